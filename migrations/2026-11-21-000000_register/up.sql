-- Which kind of keys this database holds. One row, written at first use and never again.
CREATE TABLE environment_stamp (
    is_only_row boolean PRIMARY KEY DEFAULT true CHECK (is_only_row),
    environment text NOT NULL
);

-- Small tables: copied to every node where there is more than one.
CREATE TABLE organisations (
    id uuid PRIMARY KEY,
    name text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE api_keys (
    id uuid PRIMARY KEY,
    organisation_id uuid NOT NULL REFERENCES organisations (id),
    name text NOT NULL,
    digest bytea NOT NULL UNIQUE,
    hint text NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz,
    revoked_at timestamptz
);

CREATE INDEX api_keys_of_organisation ON api_keys (organisation_id, created_at);

-- Tables that grow: led by the organisation, by which they can be spread over nodes.

-- Apart from api_keys, because a key is read by every request and this is written over and over.
CREATE TABLE key_uses (
    organisation_id uuid NOT NULL,
    key_id uuid NOT NULL,
    last_used_at timestamptz,
    sent_in_clear_at timestamptz,
    PRIMARY KEY (organisation_id, key_id)
);

-- No foreign key to organisations: every insert takes its organisation from an active key, whose own foreign key proves
-- it, and the check would make every insert lock the same organisation's row.
CREATE TABLE patients (
    organisation_id uuid NOT NULL,
    id uuid NOT NULL,
    first_name text NOT NULL,
    last_name text NOT NULL,
    phone_number text NOT NULL,
    date_of_birth date NOT NULL,
    email text,
    address_line1 text,
    address_line2 text,
    suburb text,
    state text,
    postcode text,
    country text,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    idempotency_key text,
    request_digest bytea,
    PRIMARY KEY (organisation_id, id)
);

CREATE UNIQUE INDEX patients_by_idempotency_key ON patients (organisation_id, idempotency_key)
WHERE idempotency_key IS NOT NULL;
