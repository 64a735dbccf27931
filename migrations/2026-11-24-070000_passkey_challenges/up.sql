-- What a browser was asked to sign by a passkey alone, before it is known whose: each is used up, or ten minutes old.
CREATE TABLE passkey_challenges (
    token_digest bytea PRIMARY KEY,
    started_at timestamptz NOT NULL
);
