CREATE INDEX passkeys_of_member ON passkeys (member_id);
