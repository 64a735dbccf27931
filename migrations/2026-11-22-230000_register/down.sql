DROP FUNCTION end_replaced_keys, key_refusal;
DROP VIEW key_homes, organisation_states;
DROP TABLE erasures, patients, key_refusals, key_answers, key_watches, key_uses, api_keys,
    organisations, environment_stamp;
