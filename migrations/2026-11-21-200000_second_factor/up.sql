ALTER TABLE members
    -- Shared with the member's authenticator app; null: the member signs in by password alone.
    ADD totp_secret bytea,
    -- The last half minute whose code was used: no code is good twice.
    ADD totp_used_step bigint,
    ADD CHECK ((totp_secret IS NULL) = (totp_used_step IS NULL));

CREATE TABLE recovery_codes (
    member_id uuid NOT NULL REFERENCES members (id) ON DELETE CASCADE,
    digest bytea NOT NULL,
    PRIMARY KEY (member_id, digest)
);

-- Apart from the sessions, so that no reader of those can take one for a session.
CREATE TABLE waiting_sign_ins (
    token_digest bytea PRIMARY KEY,
    member_id uuid NOT NULL REFERENCES members (id) ON DELETE CASCADE,
    started_at timestamptz NOT NULL
);

CREATE INDEX waiting_sign_ins_of_member ON waiting_sign_ins (member_id);
