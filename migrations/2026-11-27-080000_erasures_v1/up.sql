-- Erased patients, for readers as in patients_v1: whoever keeps copies must delete theirs.
CREATE VIEW erasures_v1 WITH (security_barrier) AS
SELECT
    patient_id AS id,
    organisation_id,
    erased_at,
    key_id,
    erased_in
FROM erasures
WHERE (SELECT pg_has_role(current_user, relowner, 'USAGE') FROM pg_class WHERE oid = 'erasures'::regclass)
    OR (SELECT readers.organisation_id IS NULL FROM readers WHERE role = current_user)
    OR organisation_id = (SELECT readers.organisation_id FROM readers WHERE role = current_user);

COMMENT ON VIEW erasures_v1 IS 'Patients that were erased, version 1';
COMMENT ON COLUMN erasures_v1.id IS 'id';
COMMENT ON COLUMN erasures_v1.organisation_id IS 'organisationId';
COMMENT ON COLUMN erasures_v1.erased_at IS 'erasedAt';
COMMENT ON COLUMN erasures_v1.key_id IS 'The API key by which the patient came; null: it was not kept then';
COMMENT ON COLUMN erasures_v1.erased_in IS 'The transaction that erased the patient, for intake export';
