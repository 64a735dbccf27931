-- Notes what the calling transaction sees. It must be the only thing that this transaction does, and be committed before
-- anything is given out: its commit makes sure that no number which it counts as ended is given to another transaction after
-- a crash. `superseded` is the mark that the same run made before.
CREATE FUNCTION feed_mark(
    organisation uuid, key uuid, superseded uuid, OUT token uuid, OUT next bigint, OUT running bigint[]
) LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    IF current_setting('transaction_isolation') <> 'repeatable read' THEN
        RAISE 'feed_mark needs REPEATABLE READ';
    END IF;
    IF (SELECT refusal FROM feed_open(organisation, key, superseded)) IS NOT NULL THEN
        RAISE insufficient_privilege USING MESSAGE = 'feed_open refuses this feed';
    END IF;
    INSERT INTO feed_marks (organisation_id, key_id, system_identifier, next, running)
    SELECT organisation, key, cluster.system_identifier, seen.next, seen.running
    FROM pg_control_system() AS cluster, feed_now() AS seen
    RETURNING feed_marks.id, feed_marks.next, feed_marks.running INTO token, next, running;
    UPDATE feed_marks SET is_superseded = true WHERE organisation_id = organisation AND id = superseded;
END $$;

REVOKE ALL ON FUNCTION feed_mark FROM public;
