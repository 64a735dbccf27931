ALTER TABLE api_keys DROP note;
