-- Whose each key is, which never changes. On one PostgreSQL the keys themselves say it; where `intake spread` has divided them
-- among nodes, this is a table that every node holds whole.
CREATE VIEW key_homes AS SELECT digest, organisation_id, id AS key_id FROM api_keys;
