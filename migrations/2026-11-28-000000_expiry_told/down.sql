ALTER TABLE api_keys DROP COLUMN expiry_told_at;
