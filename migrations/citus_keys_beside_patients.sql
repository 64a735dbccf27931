-- Puts the keys of an organisation beside its patients, and what decides whether it may get one. What was unique of a
-- key is then unique within its organisation, and what leads from a key to its organisation becomes a table.
ALTER TABLE readers DROP CONSTRAINT readers_organisation_id_fkey;
ALTER TABLE api_keys DROP CONSTRAINT api_keys_organisation_id_fkey;
DROP VIEW organisation_states;
CREATE TABLE organisation_states (organisation_id uuid PRIMARY KEY, suspended_at timestamptz, closed_at timestamptz,
    key_days_max integer);
INSERT INTO organisation_states SELECT id, suspended_at, closed_at, key_days_max FROM organisations;
ALTER TABLE api_keys DROP CONSTRAINT api_keys_replaces_fkey;
ALTER TABLE api_keys DROP CONSTRAINT api_keys_pkey;
ALTER TABLE api_keys DROP CONSTRAINT api_keys_digest_key;
ALTER TABLE api_keys ADD PRIMARY KEY (organisation_id, id);
ALTER TABLE api_keys ADD CONSTRAINT api_keys_replaces_fkey
    FOREIGN KEY (organisation_id, replaces) REFERENCES api_keys (organisation_id, id);
DROP VIEW key_homes;
CREATE TABLE key_homes (home uuid, digest bytea, organisation_id uuid NOT NULL, key_id uuid NOT NULL,
    PRIMARY KEY (home, digest));
INSERT INTO key_homes SELECT encode(substr(digest, 1, 16), 'hex')::uuid, digest, organisation_id, id FROM api_keys;
