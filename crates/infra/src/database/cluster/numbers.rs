//! The numbers by which `intake export` tells what was stored since its last run, on a cluster: those of the node that
//! holds the shard, beginning with the *generation* of the shard, which grows whenever the shard lies on another node
//! than before. Rows keep their numbers when they are copied, and the generation lies in the shard. So the numbers of a
//! shard only grow, and a mark, which lies in the shard too, says what was seen there wherever it lies.

use diesel::connection::SimpleConnection;
use diesel::pg::PgConnection;
use diesel::prelude::*;

/// Functions that every node is asked for, by readers, by the service and by erasures.
const FUNCTIONS: [&str; 9] = [
    "feed_unnumbered()",
    "feed_generation(uuid)",
    "feed_added(uuid)",
    "feed_number(uuid)",
    "feed_now(uuid)",
    "feed_origin(uuid)",
    "feed_open(uuid, uuid, uuid)",
    "feed_mark(uuid, uuid, uuid)",
    "feed_record_export(uuid, uuid, bigint)",
];

/// `feed_places` has one row for each shard, whose organisation is any of the shard's: where the shard was when it was
/// last looked at. A shard without a row was split from another one, or nothing was numbered there yet.
///
/// A statement that Citus passes on holds Citus's lock already, on the node to which it came. It must not wait for that
/// lock here: a move takes it on each node in turn. Marks are made past Citus, and take it.
///
/// Where Citus itself would give a number, which would be that of another node, there is an error that lets the service
/// try again: it has not noticed yet that the register is spread.
const NUMBERS: &str = "
    CREATE TABLE feed_places (
        organisation_id uuid PRIMARY KEY,
        generation bigint NOT NULL,
        group_id integer NOT NULL,
        system_identifier bigint NOT NULL
    );

    CREATE FUNCTION feed_generation(organisation uuid) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER
        SET search_path = pg_catalog, public, pg_temp SET citus.enable_manual_changes_to_shards = on AS $function$
    DECLARE
        shard bigint := get_shard_id_for_distribution_column('patients', organisation);
        place text := shard_name('feed_places', get_shard_id_for_distribution_column('feed_places', organisation));
        here integer := (SELECT groupid FROM pg_dist_local_group);
        look text := format('SELECT max(generation) FROM %s HAVING every(group_id = %s)', place, here);
        found bigint;
    BEGIN
        IF NOT EXISTS (SELECT FROM pg_dist_placement WHERE shardid = shard AND groupid = here) THEN
            RAISE serialization_failure USING MESSAGE = 'the patients of the organisation lie on another node';
        END IF;
        EXECUTE look INTO found;
        IF found IS NULL THEN
            EXECUTE format('LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE', place);
            EXECUTE look INTO found;
        END IF;
        IF found IS NULL THEN
            EXECUTE format(
                'SELECT 1 + coalesce((SELECT max(generation) FROM %s), greatest((SELECT max(created_in) FROM %s),
                    (SELECT max(erased_in) FROM %s), (SELECT max(recorded_in) FROM %s),
                    (SELECT max(next) FROM %s)) >> 44, 0)',
                place, shard_name('patients', shard),
                shard_name('erasures', get_shard_id_for_distribution_column('erasures', organisation)),
                shard_name('audit_entries', get_shard_id_for_distribution_column('audit_entries', organisation)),
                shard_name('feed_marks', get_shard_id_for_distribution_column('feed_marks', organisation))
            ) INTO found;
            EXECUTE format('DELETE FROM %s', place);
            EXECUTE format('INSERT INTO %s SELECT $1, $2, $3, system_identifier FROM pg_control_system()', place)
                USING organisation, found, here;
        END IF;
        RETURN found << 44;
    END $function$;
    REVOKE ALL ON FUNCTION feed_generation FROM public;

    CREATE OR REPLACE FUNCTION feed_number(organisation uuid) RETURNS bigint LANGUAGE sql STABLE SECURITY DEFINER
        SET search_path = pg_catalog, public, pg_temp AS $function$
        SELECT txid_current() + feed_generation(organisation)
    $function$;

    CREATE OR REPLACE FUNCTION feed_added(organisation uuid) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER
        SET search_path = pg_catalog, public, pg_temp AS $function$
    BEGIN
        PERFORM lock_shard_metadata(5, ARRAY[get_shard_id_for_distribution_column('patients', organisation)]);
        RETURN feed_generation(organisation);
    END $function$;

    CREATE OR REPLACE FUNCTION feed_origin(organisation uuid, OUT first bigint, OUT is_whole boolean) LANGUAGE plpgsql
        SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $function$
    BEGIN
        -- The number of a mark tells in which generation it was made.
        first := feed_added(organisation);
        EXECUTE format(
            'SELECT every(place.system_identifier = here.system_identifier) FROM %s AS place, pg_control_system() AS here',
            shard_name('feed_places', get_shard_id_for_distribution_column('feed_places', organisation))
        ) INTO is_whole;
    END $function$;

    CREATE FUNCTION feed_unnumbered() RETURNS bigint LANGUAGE plpgsql STABLE AS $function$
    BEGIN
        RAISE serialization_failure USING MESSAGE = 'the register is spread: rows need the number of the node that holds them';
    END $function$;
    ALTER TABLE patients ALTER created_in SET DEFAULT feed_unnumbered();
    ALTER TABLE erasures ALTER erased_in SET DEFAULT feed_unnumbered();
    ALTER TABLE audit_entries ALTER recorded_in SET DEFAULT feed_unnumbered();";

/// The number of a running transaction in the shard to which this part of `feed_places` belongs. NULL:
/// `feed_number` must find the shard's generation.
pub(crate) fn of_shard(places: &str) -> String {
    format!(
        "SELECT (max(generation) << 44) + txid_current() INTO number FROM {places}
            HAVING every(group_id = (SELECT groupid FROM pg_dist_local_group))"
    )
}

/// Makes the functions those of a cluster, before its tables are distributed.
pub(super) fn make(connection: &mut PgConnection) -> QueryResult<()> {
    connection.batch_execute(NUMBERS)?;
    FUNCTIONS.iter().try_for_each(|function| distribute(connection, function))
}

/// Lets readers see what they may, once the tables are distributed. Citus reads shards as the role that asks, not as
/// the owner of a view. So the tables themselves hide rows from readers, and the views are without a condition. A role
/// that is no reader sees what its grants let it see. The readers are looked up in this node's copy, because within a
/// statement on a shard Citus looks up nothing.
pub(super) fn let_readers_in(connection: &mut PgConnection) -> QueryResult<()> {
    connection.batch_execute(
        "DO $do$ BEGIN
            EXECUTE format(
                $make$CREATE FUNCTION feed_readable(reader name) RETURNS uuid[] LANGUAGE sql STABLE SECURITY DEFINER
                    SET search_path = pg_catalog, public, pg_temp AS $function$
                    SELECT CASE WHEN bool_or(organisation_id IS NULL) THEN NULL ELSE array_agg(organisation_id) END
                    FROM %s WHERE pg_has_role(reader, to_regrole(quote_ident(role)), 'USAGE')
                $function$$make$,
                (SELECT shard_name('readers', shardid) FROM pg_dist_shard WHERE logicalrelid = 'readers'::regclass)
            );
        END $do$",
    )?;
    distribute(connection, "feed_readable(name)")?;
    for table in ["patients", "erasures"] {
        // One by one, as Citus wants them.
        for statement in [
            format!("ALTER TABLE {table} ENABLE ROW LEVEL SECURITY"),
            format!("CREATE POLICY anyone_adds ON {table} FOR INSERT WITH CHECK (true)"),
            format!(
                "CREATE POLICY readers_read_their_own ON {table} FOR SELECT
                    USING (coalesce(organisation_id = ANY (feed_readable(current_user)), true))"
            ),
            format!(
                "DO $do$ BEGIN EXECUTE 'CREATE OR REPLACE VIEW {table}_v1 AS '
                    || split_part(pg_get_viewdef('{table}_v1'::regclass), ' WHERE ', 1); END $do$"
            ),
        ] {
            connection.batch_execute(&statement)?;
        }
    }
    Ok(())
}

fn distribute(connection: &mut PgConnection, function: &str) -> QueryResult<()> {
    diesel::sql_query(format!("SELECT create_distributed_function('{function}')")).execute(connection).map(drop)
}
