-- The audit log, and the table that tells a restored copy of the database from the original.

-- Rows are only added. Names are copied, so that entries about removed members and keys stay readable.
CREATE TABLE audit_entries (
    organisation_id uuid NOT NULL,
    id uuid NOT NULL,
    -- The time of the insert, set by the database: the service's role cannot write this column. now() would be the
    -- start of the transaction, which a client can hold open.
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    action text NOT NULL,
    -- The member: name, and below id and email address at that time.
    actor text,
    subject text NOT NULL,
    address text,
    actor_id uuid,
    actor_email text,
    -- The operator: the account that ran the command, and the reason given.
    operator text,
    reason text,
    -- The key that the entry is about, because names of keys are not unique.
    key_id uuid,
    key_hint text,
    -- What repeats the change in a database that was restored to a moment before it: the key that a new one replaces,
    -- the end of a new key, and the SHA-256 of the Idempotency-Key of an erased patient.
    replaced_key_id uuid,
    key_expires_at timestamptz,
    idempotency_digest bytea,
    -- The transaction that recorded the entry, set by the database: what is newest is decided by this number, which only
    -- grows, and never by a clock.
    recorded_in bigint NOT NULL DEFAULT txid_current(),
    PRIMARY KEY (organisation_id, id)
);

CREATE INDEX audit_entries_by_time ON audit_entries (organisation_id, at, id);

CREATE INDEX audit_entries_of_key ON audit_entries (organisation_id, key_id, at, id) WHERE key_id IS NOT NULL;

-- For the newest entries of all organisations, by which a running service notices that the database was replaced.
CREATE INDEX audit_entries_by_number ON audit_entries (recorded_in);

-- The PostgreSQL cluster and timeline in which the register is known to be complete. Restoring a backup or promoting
-- a standby starts another timeline. A dump has other transaction numbers; `added` is added to the numbers of this
-- cluster to keep them above all that the dump contains.
CREATE TABLE origin (
    is_only_row boolean PRIMARY KEY DEFAULT true CHECK (is_only_row),
    system_identifier bigint NOT NULL,
    timeline text NOT NULL,
    added bigint NOT NULL,
    -- When an operator last confirmed that the register is complete here.
    accepted_at timestamptz NOT NULL DEFAULT now(),
    -- The oid of audit_entries: a restored dump has another, even in the same cluster.
    audit_table bigint NOT NULL DEFAULT 0
);

-- The current cluster and timeline. Runs as the owner, because other roles may not be allowed to ask PostgreSQL.
CREATE FUNCTION origin_now(OUT system_identifier bigint, OUT timeline text) LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT system_identifier, left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) FROM pg_control_system()
$$;
REVOKE ALL ON FUNCTION origin_now FROM public;

INSERT INTO origin (system_identifier, timeline, added, audit_table)
SELECT system_identifier, timeline, 0, 'audit_entries'::regclass::oid::bigint FROM origin_now();
