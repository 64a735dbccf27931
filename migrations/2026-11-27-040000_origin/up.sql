-- The PostgreSQL cluster, and the timeline of it, in which the register is known to be whole. Whoever restores a backup or promotes
-- a standby begins another timeline; a dump comes into another cluster, in which its numbers of transactions mean nothing. What is
-- added to the numbers of this cluster keeps them above all that came along.
CREATE TABLE origin (
    is_only_row boolean PRIMARY KEY DEFAULT true CHECK (is_only_row),
    system_identifier bigint NOT NULL,
    timeline text NOT NULL,
    added bigint NOT NULL
);

-- Where the register is now. The owner may ask PostgreSQL, even where other roles may not.
CREATE FUNCTION origin_now(OUT system_identifier bigint, OUT timeline text) LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT system_identifier, left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) FROM pg_control_system()
$$;

INSERT INTO origin (system_identifier, timeline, added) SELECT system_identifier, timeline, 0 FROM origin_now();
