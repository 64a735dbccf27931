-- The transactions that a statement of this moment does not see: all from `next` on, and those that are running.
CREATE FUNCTION feed_now(OUT next bigint, OUT running bigint[]) LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT txid_snapshot_xmax(seen) + added, ARRAY(SELECT number + added FROM txid_snapshot_xip(seen) AS number)
    FROM origin, txid_current_snapshot() AS seen
$$;

REVOKE ALL ON FUNCTION feed_now FROM public;
