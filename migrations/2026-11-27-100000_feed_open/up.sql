-- Whether a feed can be read here, for whoever connects, and from which mark on. One word says why not.
CREATE FUNCTION feed_open(
    organisation uuid, key uuid, token uuid, OUT refusal text, OUT next bigint, OUT running bigint[]
) LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    cluster bigint := (SELECT system_identifier FROM pg_control_system());
    is_distributed boolean := false;
    mark feed_marks;
BEGIN
    -- Citus keeps a transaction's number on each of its nodes, and no snapshot spans them.
    IF to_regclass('pg_dist_partition') IS NOT NULL THEN
        EXECUTE 'SELECT EXISTS (SELECT FROM pg_dist_partition WHERE logicalrel = ''patients''::regclass)' INTO is_distributed;
    END IF;
    SELECT * INTO mark FROM feed_marks WHERE organisation_id = organisation AND id = token;
    IF NOT FOUND THEN
        SELECT * INTO mark FROM feed_marks WHERE id = token;
    END IF;
    next := coalesce(mark.next, 0);
    running := coalesce(mark.running, '{}');
    refusal := CASE
        WHEN NOT EXISTS (SELECT FROM organisations WHERE id = organisation) OR NOT (
            (SELECT pg_has_role(session_user, relowner, 'USAGE') FROM pg_class WHERE oid = 'patients'::regclass)
            OR EXISTS (
                SELECT FROM readers
                WHERE role = session_user AND (organisation_id IS NULL OR organisation_id = organisation)
            )
        ) THEN 'unreadable'
        WHEN is_distributed THEN 'distributed'
        WHEN pg_is_in_recovery() THEN 'standby'
        WHEN cluster <> (SELECT system_identifier FROM origin) THEN 'restored'
        WHEN token IS NULL THEN NULL
        WHEN mark.id IS NULL THEN 'unknown'
        WHEN mark.system_identifier <> cluster THEN 'cluster'
        WHEN mark.organisation_id <> organisation THEN 'organisation'
        WHEN mark.key_id IS DISTINCT FROM key THEN 'key'
    END;
END $$;

REVOKE ALL ON FUNCTION feed_open FROM public;
