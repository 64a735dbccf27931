-- Small tables, as organisations and api_keys: written by people, not by requests.
CREATE TABLE members (
    id uuid PRIMARY KEY,
    organisation_id uuid NOT NULL REFERENCES organisations (id),
    email text NOT NULL,
    -- The address in lower case: two that differ in case alone are the same.
    email_folded text NOT NULL UNIQUE,
    name text NOT NULL,
    password_hash text NOT NULL,
    joined_at timestamptz NOT NULL
);

CREATE INDEX members_of_organisation ON members (organisation_id, joined_at);

CREATE TABLE invitations (
    token_digest bytea PRIMARY KEY,
    organisation_id uuid NOT NULL REFERENCES organisations (id),
    email text NOT NULL,
    expires_at timestamptz NOT NULL,
    -- Set once: an invitation is good for one member.
    accepted_by uuid
);

CREATE TABLE sessions (
    token_digest bytea PRIMARY KEY,
    member_id uuid NOT NULL REFERENCES members (id) ON DELETE CASCADE,
    started_at timestamptz NOT NULL,
    last_used_at timestamptz NOT NULL
);

CREATE INDEX sessions_of_member ON sessions (member_id);

ALTER TABLE api_keys ADD created_by text, ADD revoked_by text,
    -- The key that this one takes the place of, and for how long that one is still good after the first use of this one.
    ADD replaces uuid REFERENCES api_keys (id),
    ADD replaced_ends_after interval;

-- Only ever added to. Names are those of the moment: whoever is removed stays in the record.
CREATE TABLE audit_entries (
    organisation_id uuid NOT NULL,
    id uuid NOT NULL,
    at timestamptz NOT NULL,
    action text NOT NULL,
    actor text,
    subject text NOT NULL,
    address text,
    PRIMARY KEY (organisation_id, id)
);

-- How requests were answered, by day. Without a field, the answers themselves; with one, those of them that named it.
CREATE TABLE key_answers (
    organisation_id uuid NOT NULL,
    key_id uuid NOT NULL,
    day date NOT NULL,
    status integer NOT NULL,
    field text NOT NULL,
    count bigint NOT NULL,
    PRIMARY KEY (organisation_id, key_id, day, status, field)
);
