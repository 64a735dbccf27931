-- One-time links by which members choose another password. Each member has one at most: a later link replaces it.
CREATE TABLE password_resets (
    member_id uuid PRIMARY KEY REFERENCES members (id) ON DELETE CASCADE,
    token_digest bytea NOT NULL UNIQUE,
    expires_at timestamptz NOT NULL
);
