-- Organisations, their API keys and their patients.
--
-- Two kinds of tables. Small ones are written by people, not by requests. Tables that grow have the organisation
-- first in their primary key, by which `intake spread` distributes them over the nodes of a Citus cluster.

-- The environment (development or production) that this database belongs to: one row, written at first use, never
-- changed.
CREATE TABLE environment_stamp (
    is_only_row boolean PRIMARY KEY DEFAULT true CHECK (is_only_row),
    environment text NOT NULL
);

CREATE TABLE organisations (
    id uuid PRIMARY KEY,
    name text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    -- Every member must use two-step sign-in.
    second_factor_required boolean NOT NULL DEFAULT false,
    -- When an operator suspended the organisation, or closed it for good.
    suspended_at timestamptz,
    closed_at timestamptz,
    -- The most days for which a key may be made. NULL: no limit.
    key_days_max integer,
    -- The name of the time zone in which members see days and times.
    time_zone text NOT NULL DEFAULT 'UTC',
    -- How many of its patients were erased with it.
    erased_patients bigint NOT NULL DEFAULT 0
);

-- What decides whether an organisation may get a key. On a Citus cluster `intake spread` replaces this view by a table
-- that holds a copy beside the organisation's keys, so that making one needs no other node.
CREATE VIEW organisation_states AS
SELECT id AS organisation_id, suspended_at, closed_at, key_days_max FROM organisations;

CREATE TABLE api_keys (
    id uuid PRIMARY KEY,
    organisation_id uuid NOT NULL REFERENCES organisations (id),
    name text NOT NULL,
    -- SHA-256 of the key. The key itself is never stored.
    digest bytea NOT NULL UNIQUE,
    -- The last characters of the key, by which people recognise it.
    hint text NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz,
    revoked_at timestamptz,
    created_by text,
    revoked_by text,
    -- The key that this one replaces, and how long that key still works after the first use of this one.
    replaces uuid REFERENCES api_keys (id),
    replaced_ends_after interval,
    note text,
    -- The company or person to call about it.
    contact text,
    -- When the members got the mail about the coming expiry.
    expiry_announced_at timestamptz,
    -- A copy of the organisation's, because the insert of a patient reads only the row of its key.
    suspended_at timestamptz,
    -- Since when the key is refused because a member or an operator paused it.
    paused_at timestamptz,
    paused_by text,
    -- The networks from which the key is accepted. NULL: from any.
    allowed_networks cidr[],
    -- The audit entry of the stop that paused the key together with all others. NULL: no stop did.
    stopped_in uuid
);

-- Why a key is refused at a moment, wherever the request comes from. NULL: it is accepted. Every statement that asks for
-- a key's status calls this. PostgreSQL replaces the call by the expression, which it does for no strict function, nor
-- for one with settings. Citus allows a call with columns in a change only if it is immutable.
CREATE FUNCTION key_refusal(
    revoked_at timestamptz, expires_at timestamptz, suspended_at timestamptz, paused_at timestamptz, at timestamptz
) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN revoked_at IS NOT NULL THEN 'revoked' WHEN expires_at <= at THEN 'expired'
    WHEN suspended_at IS NOT NULL THEN 'suspended' WHEN paused_at IS NOT NULL THEN 'paused' END;

CREATE INDEX api_keys_of_organisation ON api_keys (organisation_id, created_at);

-- For finding a key's replacement, and for the foreign key when a key is deleted.
CREATE INDEX api_keys_by_replaced ON api_keys (replaces, organisation_id) WHERE replaces IS NOT NULL;

-- A revoked key stays revoked: the database refuses to change its row, even for the service.
ALTER TABLE api_keys ENABLE ROW LEVEL SECURITY;
CREATE POLICY anyone_reads ON api_keys FOR SELECT USING (true);
CREATE POLICY anyone_adds ON api_keys FOR INSERT WITH CHECK (true);
CREATE POLICY only_unrevoked_change ON api_keys FOR UPDATE USING (revoked_at IS NULL) WITH CHECK (true);

-- The organisation of each key, which never changes. On a Citus cluster, where the keys are distributed, `intake
-- spread` replaces this view by a table that is distributed by the key.
CREATE VIEW key_homes AS SELECT digest, organisation_id, id AS key_id FROM api_keys;

-- Not part of api_keys: every request reads the key, and the time of its last use is written again and again.
CREATE TABLE key_uses (
    organisation_id uuid NOT NULL,
    key_id uuid NOT NULL,
    last_used_at timestamptz,
    sent_in_clear_at timestamptz,
    -- The client of the last use, deleted some time after it: the IP address, and the beginning of its User-Agent.
    last_address text,
    last_program text,
    -- When the key was last accepted again, because it or its organisation was resumed.
    resumed_at timestamptz,
    -- When the members last got the mail about a busy key that fell silent, and about one that is refused more often.
    silence_announced_at timestamptz,
    refusals_announced_at timestamptz,
    PRIMARY KEY (organisation_id, key_id)
);

-- Since when, without a long break, the use of keys has been looked at, for each part of the register: one row, or on
-- Citus one for each shard. What came before a break says nothing about who fell silent.
CREATE TABLE key_watches (
    part integer PRIMARY KEY,
    since timestamptz NOT NULL,
    looked_at timestamptz NOT NULL
);

-- The first use of a key sets the end of the key that it replaces. An end that is sooner stays; a later use changes
-- nothing, because the end has been set by then. Runs as the owner: the service's role cannot change when a key expires,
-- so it can neither prolong a key nor let an expired one work again. `ages` are seconds since the uses.
CREATE FUNCTION end_replaced_keys(organisations uuid[], keys uuid[], ages double precision[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    -- Reckoned without a time zone, because Citus refuses what depends on one here, and must be given the organisations
    -- of both keys.
    UPDATE api_keys AS old
    SET expires_at = (now() AT TIME ZONE 'UTC' - used.age * interval '1 second' + new.replaced_ends_after)
        AT TIME ZONE 'UTC'
    FROM unnest(organisations, keys, ages) AS used (organisation_id, id, age)
        JOIN api_keys AS new ON new.organisation_id = used.organisation_id AND new.id = used.id
    WHERE old.organisation_id = new.organisation_id AND old.id = new.replaces AND old.revoked_at IS NULL
        AND (old.expires_at IS NULL OR old.expires_at >
            (now() AT TIME ZONE 'UTC' - used.age * interval '1 second' + new.replaced_ends_after) AT TIME ZONE 'UTC')
        AND old.organisation_id = ANY (organisations) AND new.organisation_id = ANY (organisations);
END $$;

REVOKE ALL ON FUNCTION end_replaced_keys FROM public;

-- Sets the latest end of a key whose replacement is made. An end that is sooner stays, and none comes to lie in the past.
-- Runs as the owner for the same reason.
CREATE FUNCTION end_replaced_key_by(organisation uuid, replaced uuid, latest timestamptz) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    ends_at timestamptz := greatest(latest, now());
BEGIN
    UPDATE api_keys SET expires_at = ends_at
    WHERE organisation_id = organisation AND id = replaced AND revoked_at IS NULL
        AND (expires_at IS NULL OR expires_at > ends_at);
END $$;

REVOKE ALL ON FUNCTION end_replaced_key_by FROM public;

-- The number of answers by key, day and status. Rows with an empty field count answers; rows with a field count the
-- answers that named this field.
CREATE TABLE key_answers (
    organisation_id uuid NOT NULL,
    key_id uuid NOT NULL,
    -- In UTC.
    day date NOT NULL,
    -- In the time zone that the organisation had when the answers were counted.
    local_day date NOT NULL,
    status integer NOT NULL,
    field text NOT NULL,
    count bigint NOT NULL,
    PRIMARY KEY (organisation_id, key_id, day, local_day, status, field)
);

-- The latest refused requests of each key, without anything from their bodies. Clients choose request ids, so an id
-- can appear more than once.
CREATE TABLE key_refusals (
    organisation_id uuid NOT NULL,
    key_id uuid NOT NULL,
    at timestamptz NOT NULL,
    request_id text NOT NULL,
    status integer NOT NULL,
    reason text NOT NULL,
    -- The IP address that the request came from.
    address text,
    -- The names of the fields that broke rules.
    fields text[] NOT NULL DEFAULT '{}',
    -- The request had ordered the failure.
    is_simulated boolean NOT NULL DEFAULT false,
    PRIMARY KEY (organisation_id, key_id, at, request_id)
);

-- No foreign key to organisations: each insert takes the organisation from an active key, whose own foreign key
-- proves that the organisation exists. A second foreign key would make all inserts lock the organisation's row.
CREATE TABLE patients (
    organisation_id uuid NOT NULL,
    id uuid NOT NULL,
    first_name text NOT NULL,
    last_name text NOT NULL,
    phone_number text NOT NULL,
    date_of_birth date NOT NULL,
    email text,
    address_line1 text,
    address_line2 text,
    suburb text,
    state text,
    postcode text,
    country text,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    -- Safe retry: the request's Idempotency-Key, and the SHA-256 of the patient that was sent with it.
    idempotency_key text,
    request_digest bytea,
    -- The transaction that stored the patient: `intake export` finds by it what was committed since its last run.
    created_in bigint NOT NULL DEFAULT txid_current(),
    -- The API key of the request.
    key_id uuid,
    PRIMARY KEY (organisation_id, id)
);

CREATE UNIQUE INDEX patients_by_idempotency_key ON patients (organisation_id, idempotency_key)
WHERE idempotency_key IS NOT NULL;

-- A few kilobytes for millions of rows, and almost free on insert. The ranges have 128 pages because unsummarised
-- pages are read in full, and because autovacuum keeps at most 256 requests to summarise a range.
CREATE INDEX patients_created_in ON patients USING brin (created_in) WITH (pages_per_range = 128, autosummarize = on);

-- The ids of erased patients, without their details. The digest is the SHA-256 of the patient's idempotency key: a
-- repeated create is recognised by it and refused.
CREATE TABLE erasures (
    organisation_id uuid NOT NULL,
    patient_id uuid NOT NULL,
    erased_at timestamptz NOT NULL DEFAULT now(),
    erased_in bigint NOT NULL DEFAULT txid_current(),
    key_id uuid,
    idempotency_digest bytea,
    PRIMARY KEY (organisation_id, patient_id)
);

CREATE UNIQUE INDEX erasures_by_idempotency_digest ON erasures (organisation_id, idempotency_digest)
WHERE idempotency_digest IS NOT NULL;

-- How many of the patients with ids after one and up to another an API key created and still exist, how many of them were
-- erased, and the SHA-256 of the existing ids. Runs as the owner: the service's role cannot read which key created a
-- patient. An id begins with the time of creation, so the primary key leads to the patients of a day, whatever the
-- statistics say.
CREATE FUNCTION created_by_key(
    organisation uuid, key uuid, after uuid, until uuid, OUT existing bigint, OUT erased bigint, OUT digest bytea
) LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp SET enable_seqscan = off AS $$
BEGIN
    SELECT count(*), sha256(convert_to(coalesce(string_agg(id::text || chr(10), '' ORDER BY id), ''), 'UTF8'))
    INTO existing, digest FROM patients
    WHERE organisation_id = organisation AND key_id = key AND id > after AND id <= until;
    SELECT count(*) INTO erased FROM erasures
    WHERE organisation_id = organisation AND key_id = key AND patient_id > after AND patient_id <= until;
END $$;

REVOKE ALL ON FUNCTION created_by_key FROM public;
