CREATE TABLE passkeys (
    -- The SHA-256 of the credential's id, which may be long.
    digest bytea PRIMARY KEY,
    member_id uuid NOT NULL REFERENCES members (id) ON DELETE CASCADE,
    credential bytea NOT NULL,
    -- As SubjectPublicKeyInfo.
    public_key bytea NOT NULL,
    name text NOT NULL,
    created_at timestamptz NOT NULL,
    last_used_at timestamptz
);
