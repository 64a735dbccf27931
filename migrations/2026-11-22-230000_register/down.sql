DROP FUNCTION end_replaced_keys, end_replaced_key_by, key_refusal, created_by_key;
DROP VIEW key_homes, organisation_states;
DROP TABLE erasures, patients, key_refusals, key_answers, key_watches, key_uses, api_keys,
    organisations, environment_stamp;
