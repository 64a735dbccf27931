-- Every node can be asked for the origin, which the coordinator answers, ends keys, and knows
-- which are refused.
SELECT create_distributed_function('origin_now()');

SELECT create_distributed_function('end_replaced_keys(uuid[], uuid[], double precision[])');

SELECT create_distributed_function('key_refusal(timestamptz, timestamptz, timestamptz, timestamptz, timestamptz)');
