-- When the members were told by mail that the key will expire; null: they were not.
ALTER TABLE api_keys ADD COLUMN expiry_told_at timestamptz;
