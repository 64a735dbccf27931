-- Patients that were erased, without their details. The digest is the SHA-256 of their idempotency key: a repetition of the
-- creation is known by it and brings nobody back.
CREATE TABLE erasures (
    organisation_id uuid NOT NULL,
    patient_id uuid NOT NULL,
    erased_at timestamptz NOT NULL DEFAULT now(),
    erased_in bigint NOT NULL DEFAULT txid_current(),
    key_id uuid,
    idempotency_digest bytea,
    PRIMARY KEY (organisation_id, patient_id)
);

CREATE UNIQUE INDEX erasures_by_idempotency_digest ON erasures (organisation_id, idempotency_digest)
WHERE idempotency_digest IS NOT NULL;
