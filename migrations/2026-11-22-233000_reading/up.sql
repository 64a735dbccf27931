-- What systems that read patients see: two views, and the functions behind `intake export`.

-- The database roles that may read patients through the views. No organisation: the role reads those of all
-- organisations.
CREATE TABLE readers (
    role text PRIMARY KEY,
    organisation_id uuid REFERENCES organisations (id)
);

-- The owner of the register sees every patient, a reader those of its organisation; a role that inherits a reader
-- role sees what that role sees. The columns' comments are their names in JSON. Columns are only added, at the end;
-- any other change makes a patients_v2 beside this view. It uses no view, such as pg_roles: Citus would copy that to its
-- nodes, for which it must be a superuser.
CREATE VIEW patients_v1 WITH (security_barrier) AS
SELECT
    id,
    first_name,
    last_name,
    phone_number,
    email,
    date_of_birth,
    address_line1,
    address_line2,
    suburb,
    state,
    postcode,
    country,
    organisation_id,
    true AS is_identified,
    created_at,
    updated_at,
    key_id,
    created_in
FROM patients
WHERE (SELECT pg_has_role(current_user, relowner, 'USAGE') FROM pg_class WHERE oid = 'patients'::regclass)
    OR EXISTS (
        SELECT FROM readers
        WHERE readers.organisation_id IS NULL AND pg_has_role(current_user, to_regrole(quote_ident(role)), 'USAGE')
    )
    OR organisation_id = ANY (ARRAY(
        SELECT readers.organisation_id FROM readers
        WHERE pg_has_role(current_user, to_regrole(quote_ident(role)), 'USAGE')
    ));

COMMENT ON VIEW patients_v1 IS 'Patients as the API returned them, version 1';
COMMENT ON COLUMN patients_v1.id IS 'id';
COMMENT ON COLUMN patients_v1.first_name IS 'firstName';
COMMENT ON COLUMN patients_v1.last_name IS 'lastName';
COMMENT ON COLUMN patients_v1.phone_number IS 'phoneNumber';
COMMENT ON COLUMN patients_v1.email IS 'email';
COMMENT ON COLUMN patients_v1.date_of_birth IS 'dateOfBirth';
COMMENT ON COLUMN patients_v1.address_line1 IS 'addressLine1';
COMMENT ON COLUMN patients_v1.address_line2 IS 'addressLine2';
COMMENT ON COLUMN patients_v1.suburb IS 'suburb';
COMMENT ON COLUMN patients_v1.state IS 'state';
COMMENT ON COLUMN patients_v1.postcode IS 'postcode';
COMMENT ON COLUMN patients_v1.country IS 'country';
COMMENT ON COLUMN patients_v1.organisation_id IS 'organisationId';
COMMENT ON COLUMN patients_v1.is_identified IS 'isIdentified';
COMMENT ON COLUMN patients_v1.created_at IS 'createdAt';
COMMENT ON COLUMN patients_v1.updated_at IS 'updatedAt';
COMMENT ON COLUMN patients_v1.key_id IS 'The API key by which the patient came; null: it was not kept then';
COMMENT ON COLUMN patients_v1.created_in IS 'The transaction that stored the patient, for intake export';

-- Erased patients, visible to the same roles: a system that keeps copies must delete them.
CREATE VIEW erasures_v1 WITH (security_barrier) AS
SELECT
    patient_id AS id,
    organisation_id,
    erased_at,
    key_id,
    erased_in
FROM erasures
WHERE (SELECT pg_has_role(current_user, relowner, 'USAGE') FROM pg_class WHERE oid = 'erasures'::regclass)
    OR EXISTS (
        SELECT FROM readers
        WHERE readers.organisation_id IS NULL AND pg_has_role(current_user, to_regrole(quote_ident(role)), 'USAGE')
    )
    OR organisation_id = ANY (ARRAY(
        SELECT readers.organisation_id FROM readers
        WHERE pg_has_role(current_user, to_regrole(quote_ident(role)), 'USAGE')
    ));

COMMENT ON VIEW erasures_v1 IS 'Patients that were erased, version 1';
COMMENT ON COLUMN erasures_v1.id IS 'id';
COMMENT ON COLUMN erasures_v1.organisation_id IS 'organisationId';
COMMENT ON COLUMN erasures_v1.erased_at IS 'erasedAt';
COMMENT ON COLUMN erasures_v1.key_id IS 'The API key by which the patient came; null: it was not kept then';
COMMENT ON COLUMN erasures_v1.erased_in IS 'The transaction that erased the patient, for intake export';

-- What each run of `intake export` has seen: the next transaction, and the transactions that were running. The row is
-- committed before the run gives out any patient, so a mark exists exactly where the history that it covers exists.
CREATE TABLE feed_marks (
    organisation_id uuid NOT NULL,
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    -- Set: the export contains only patients that this API key created.
    key_id uuid,
    system_identifier bigint NOT NULL,
    next bigint NOT NULL,
    running bigint[] NOT NULL,
    made_at timestamptz NOT NULL DEFAULT now(),
    -- When a later run replaced this mark, which is deleted some time after.
    superseded_at timestamptz,
    PRIMARY KEY (organisation_id, id)
);

CREATE INDEX feed_marks_by_time ON feed_marks (made_at);

-- What is added to the number of a transaction that stores or erases patients of this organisation, so that the numbers
-- only grow wherever the patients lie. `intake spread` replaces this function and `feed_origin`.
CREATE FUNCTION feed_added(organisation uuid) RETURNS bigint LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT added FROM origin
$$;

REVOKE ALL ON FUNCTION feed_added FROM public;

-- The first number that this PostgreSQL cluster gave itself, and whether all that the register holds are lower than
-- those that it gives next.
CREATE FUNCTION feed_origin(organisation uuid, OUT first bigint, OUT is_whole boolean) LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT 0::bigint, origin.system_identifier = here.system_identifier FROM origin, pg_control_system() AS here
$$;

REVOKE ALL ON FUNCTION feed_origin FROM public;

-- The number with which a running transaction stores or erases a patient, or records it, where the patient lies.
CREATE FUNCTION feed_number(organisation uuid) RETURNS bigint LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT txid_current() + feed_added(organisation)
$$;

REVOKE ALL ON FUNCTION feed_number FROM public;

-- The transactions that a statement at this time does not see: all from `next` on, and those that are running.
CREATE FUNCTION feed_now(organisation uuid, OUT next bigint, OUT running bigint[]) LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT txid_snapshot_xmax(seen) + added, ARRAY(SELECT number + added FROM txid_snapshot_xip(seen) AS number)
    FROM feed_added(organisation) AS added, txid_current_snapshot() AS seen
$$;

REVOKE ALL ON FUNCTION feed_now FROM public;

-- The same for a follower of the audit log, wherever the organisation's entries lie.
CREATE FUNCTION audit_now(organisation uuid, OUT next bigint, OUT running bigint[]) LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT now.next, now.running FROM feed_now(organisation) AS now
$$;

REVOKE ALL ON FUNCTION audit_now FROM public;

-- Whether the connected role can export here, and from which mark. `refusal` is one word that says why not.
CREATE FUNCTION feed_open(
    organisation uuid, key uuid, token uuid, OUT refusal text, OUT next bigint, OUT running bigint[]
) LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    cluster bigint := (SELECT system_identifier FROM pg_control_system());
    reader name := session_user;
    origin record;
    mark feed_marks;
BEGIN
    next := 0;
    running := '{}';
    IF NOT EXISTS (SELECT FROM organisation_states WHERE organisation_id = organisation) OR NOT (
        (SELECT pg_has_role(reader, relowner, 'USAGE') FROM pg_class WHERE oid = 'patients'::regclass)
        OR EXISTS (
            SELECT FROM readers
            WHERE pg_has_role(reader, to_regrole(quote_ident(role)), 'USAGE')
                AND (organisation_id IS NULL OR organisation_id = organisation)
        )
    ) THEN
        refusal := 'unreadable';
        RETURN;
    END IF;
    IF pg_is_in_recovery() THEN
        refusal := 'standby';
        RETURN;
    END IF;
    SELECT * INTO origin FROM feed_origin(organisation);
    SELECT * INTO mark FROM feed_marks WHERE organisation_id = organisation AND id = token;
    IF NOT FOUND AND token IS NOT NULL THEN
        SELECT * INTO mark FROM feed_marks WHERE id = token;
    END IF;
    next := coalesce(mark.next, 0);
    running := coalesce(mark.running, '{}');
    refusal := CASE
        WHEN NOT origin.is_whole THEN 'restored'
        WHEN token IS NULL THEN NULL
        WHEN mark.id IS NULL THEN 'unknown'
        WHEN mark.next >= origin.first AND mark.system_identifier <> cluster THEN 'cluster'
        WHEN mark.organisation_id <> organisation THEN 'organisation'
        WHEN mark.key_id IS DISTINCT FROM key THEN 'key'
    END;
END $$;

REVOKE ALL ON FUNCTION feed_open FROM public;

-- Stores what a statement sees now. The calling transaction must do nothing else and commit before anything is given
-- out: its commit makes sure that no transaction number counted as ended is used again after a crash. `superseded` is
-- an earlier mark of the same export, which has given out a later one since.
CREATE FUNCTION feed_mark(
    organisation uuid, key uuid, superseded uuid, OUT token uuid, OUT next bigint, OUT running bigint[]
) LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    cluster bigint := (SELECT system_identifier FROM pg_control_system());
BEGIN
    IF (SELECT refusal FROM feed_open(organisation, key, superseded)) IS NOT NULL THEN
        RAISE insufficient_privilege USING MESSAGE = 'feed_open refuses this feed';
    END IF;
    token := gen_random_uuid();
    SELECT seen.next, seen.running INTO next, running FROM feed_now(organisation) AS seen;
    INSERT INTO feed_marks (organisation_id, id, key_id, system_identifier, next, running)
    VALUES (organisation, token, key, cluster, next, running);
    UPDATE feed_marks SET superseded_at = now() WHERE organisation_id = organisation AND id = superseded;
END $$;

REVOKE ALL ON FUNCTION feed_mark FROM public;

-- Adds an audit entry: how many patients were given out up to a mark, and to which role. Once for each mark.
CREATE FUNCTION feed_record_export(organisation uuid, token uuid, patients bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    key uuid := (SELECT key_id FROM feed_marks WHERE organisation_id = organisation AND id = token);
    -- Not within the insert, where Citus would work it out itself.
    exported text := patients || CASE WHEN patients = 1 THEN ' patient' ELSE ' patients' END;
    number bigint := feed_number(organisation);
BEGIN
    IF (SELECT refusal FROM feed_open(organisation, key, token)) IS NOT NULL THEN
        RAISE insufficient_privilege USING MESSAGE = 'feed_open refuses this feed';
    END IF;
    INSERT INTO audit_entries (organisation_id, id, action, operator, subject, address, recorded_in)
    VALUES (
        organisation, token, 'patients_exported', 'the role ' || session_user, exported, host(inet_client_addr()), number
    )
    ON CONFLICT DO NOTHING;
END $$;

REVOKE ALL ON FUNCTION feed_record_export FROM public;
