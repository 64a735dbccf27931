-- Every node can be asked for the origin, which the coordinator answers, and for what a key created, ends keys, and knows
-- which are refused.
SELECT create_distributed_function('origin_now()');

SELECT create_distributed_function('end_replaced_keys(uuid[], uuid[], double precision[])');

SELECT create_distributed_function('end_replaced_key_by(uuid, uuid, timestamptz)');

SELECT create_distributed_function('created_by_key(uuid, uuid, uuid, uuid)');

SELECT create_distributed_function('key_refusal(timestamptz, timestamptz, timestamptz, timestamptz, timestamptz)');
