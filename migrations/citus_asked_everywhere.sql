-- Every node can be asked for the origin, which the coordinator answers, and for what a key created, ends keys, and knows
-- which are refused.
SELECT create_distributed_function('origin_now()');

SELECT create_distributed_function('end_replaced_keys(uuid[], uuid[], double precision[])');

-- Runs where the keys are, over the connection that has just stored the replacement: Citus lets nobody else, not even the
-- owner of the function, change in the same transaction what lies beside it.
SELECT create_distributed_function('end_replaced_key_by(uuid, uuid, timestamptz)', 'organisation',
    colocate_with := 'api_keys', force_delegation := true);

SELECT create_distributed_function('created_by_key(uuid, uuid, uuid, uuid)');

SELECT create_distributed_function('key_refusal(timestamptz, timestamptz, timestamptz, timestamptz, timestamptz)');
