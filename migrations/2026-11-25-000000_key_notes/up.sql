-- What people have written down about a key; null: nothing.
ALTER TABLE api_keys ADD note text;
