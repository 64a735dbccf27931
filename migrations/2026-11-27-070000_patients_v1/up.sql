-- What readers see: the owner of the register everything, a reader its organisation, or all. The columns' comments are the
-- names in JSON. Only added to, at its end; anything else would be a patients_v2 beside it.
CREATE VIEW patients_v1 WITH (security_barrier) AS
SELECT
    id,
    first_name,
    last_name,
    phone_number,
    email,
    date_of_birth,
    address_line1,
    address_line2,
    suburb,
    state,
    postcode,
    country,
    organisation_id,
    true AS is_identified,
    created_at,
    updated_at,
    key_id,
    created_in
FROM patients
WHERE (SELECT pg_has_role(current_user, relowner, 'USAGE') FROM pg_class WHERE oid = 'patients'::regclass)
    OR (SELECT readers.organisation_id IS NULL FROM readers WHERE role = current_user)
    OR organisation_id = (SELECT readers.organisation_id FROM readers WHERE role = current_user);

COMMENT ON VIEW patients_v1 IS 'Patients as the API returned them, version 1';
COMMENT ON COLUMN patients_v1.id IS 'id';
COMMENT ON COLUMN patients_v1.first_name IS 'firstName';
COMMENT ON COLUMN patients_v1.last_name IS 'lastName';
COMMENT ON COLUMN patients_v1.phone_number IS 'phoneNumber';
COMMENT ON COLUMN patients_v1.email IS 'email';
COMMENT ON COLUMN patients_v1.date_of_birth IS 'dateOfBirth';
COMMENT ON COLUMN patients_v1.address_line1 IS 'addressLine1';
COMMENT ON COLUMN patients_v1.address_line2 IS 'addressLine2';
COMMENT ON COLUMN patients_v1.suburb IS 'suburb';
COMMENT ON COLUMN patients_v1.state IS 'state';
COMMENT ON COLUMN patients_v1.postcode IS 'postcode';
COMMENT ON COLUMN patients_v1.country IS 'country';
COMMENT ON COLUMN patients_v1.organisation_id IS 'organisationId';
COMMENT ON COLUMN patients_v1.is_identified IS 'isIdentified';
COMMENT ON COLUMN patients_v1.created_at IS 'createdAt';
COMMENT ON COLUMN patients_v1.updated_at IS 'updatedAt';
COMMENT ON COLUMN patients_v1.key_id IS 'The API key by which the patient came; null: it was not kept then';
COMMENT ON COLUMN patients_v1.created_in IS 'The transaction that stored the patient, for intake export';
