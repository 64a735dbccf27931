DROP TABLE key_answers;
DROP TABLE audit_entries;
ALTER TABLE api_keys DROP created_by, DROP revoked_by, DROP replaces, DROP replaced_ends_after;
DROP TABLE sessions;
DROP TABLE invitations;
DROP TABLE members;
