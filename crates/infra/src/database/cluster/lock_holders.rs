//! What holds a lock in a cluster. A statement waits on the node that holds the rows, as another session than that of
//! its client, and so does what it waits for.

/// Query for the sessions of clients that hold up a session of the connected node. Citus accepts their numbers on every
/// node, where PostgreSQL accepts those of its processes.
pub(crate) const IN_CLUSTER: &str = "WITH RECURSIVE found AS (SELECT * FROM citus_internal_global_blocked_processes()),
    edges AS (
        SELECT coalesce(nullif(waiting_global_pid, 0),
                citus_calculate_gpid(get_nodeid_for_groupid(waiting_node_id), waiting_pid)) AS waiting,
            coalesce(nullif(blocking_global_pid, 0),
                citus_calculate_gpid(get_nodeid_for_groupid(blocking_node_id), blocking_pid)) AS blocking
        FROM found),
    queue (pid) AS (
        SELECT citus_calculate_gpid(citus_nodeid_for_gpid(citus_backend_gpid()), $1)
        UNION SELECT blocking FROM queue JOIN edges ON waiting = pid)
    SELECT queue.pid, usename::text AS role, application_name AS application, xact_start AS since, NULL AS gid
    FROM queue LEFT JOIN citus_stat_activity AS session
        ON nodeid = citus_nodeid_for_gpid(queue.pid) AND session.pid = citus_pid_for_gpid(queue.pid)
    WHERE EXISTS (SELECT FROM edges WHERE blocking = queue.pid) AND queue.pid NOT IN (SELECT waiting FROM edges)
    ORDER BY since";
