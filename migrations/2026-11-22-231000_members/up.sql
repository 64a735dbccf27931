-- The people who manage an organisation's API keys, and how they sign in. All tables are small; on a Citus cluster
-- only the coordinator has them, because they are looked up by email address or token, not by organisation.

-- A person's account, with at most one password for all organisations that the person belongs to.
CREATE TABLE members (
    -- Random: an id that holds a time would tell an organisation that the account is older than the membership.
    id uuid PRIMARY KEY,
    email text NOT NULL,
    -- The address in lower case: addresses that differ only in case are the same. Not unique: where there is no mail
    -- server, nobody proves an address, and each of several organisations can have an account with it.
    email_folded text NOT NULL,
    -- When the address was proved to be the person's, and how: by a mailed link ('mail'), by single sign-on
    -- ('provider'), or by an operator ('operator'). Null: nobody has proved it, and single sign-on does not find the
    -- account by it.
    email_proved_at timestamptz,
    email_proved_by text,
    -- The person at the provider of single sign-on: the provider, and the person's id there, which never change.
    provider_issuer text,
    provider_subject text,
    name text NOT NULL,
    -- Null: the person joined by single sign-on, and has no password.
    password_hash text,
    -- The secret of the member's authenticator app; null if the member signs in without one.
    totp_secret bytea,
    -- The last half minute whose code was used: each code works once.
    totp_used_step bigint,
    -- Wrong codes in a row. After too many, the app's codes no longer work.
    wrong_codes integer NOT NULL DEFAULT 0,
    CHECK ((totp_secret IS NULL) = (totp_used_step IS NULL)),
    CHECK ((email_proved_at IS NULL) = (email_proved_by IS NULL)),
    CHECK ((provider_issuer IS NULL) = (provider_subject IS NULL))
);

CREATE INDEX members_by_email ON members (email_folded);
CREATE INDEX members_by_provider ON members (provider_subject) WHERE provider_subject IS NOT NULL;

-- An account is deleted with its last membership.
CREATE TABLE memberships (
    organisation_id uuid NOT NULL REFERENCES organisations (id),
    member_id uuid NOT NULL REFERENCES members (id) ON DELETE CASCADE,
    role text NOT NULL,
    joined_at timestamptz NOT NULL,
    PRIMARY KEY (organisation_id, member_id)
);

CREATE INDEX memberships_of_member ON memberships (member_id);

CREATE TABLE invitations (
    token_digest bytea PRIMARY KEY,
    organisation_id uuid NOT NULL REFERENCES organisations (id),
    email text NOT NULL,
    expires_at timestamptz NOT NULL,
    -- Set once: an invitation makes one member.
    accepted_by uuid,
    -- The invitation ends when this member is removed. Null: an operator made it.
    invited_by uuid,
    role text NOT NULL DEFAULT 'administrator',
    -- If false, the link was shown to its creator: only a mailed one proves the address.
    is_mailed boolean NOT NULL,
    FOREIGN KEY (organisation_id, invited_by) REFERENCES memberships (organisation_id, member_id) ON DELETE CASCADE
);

CREATE INDEX invitations_of_member ON invitations (organisation_id, invited_by);
CREATE INDEX invitations_of_organisation ON invitations (organisation_id, expires_at);

CREATE TABLE sessions (
    token_digest bytea PRIMARY KEY,
    member_id uuid NOT NULL REFERENCES members (id) ON DELETE CASCADE,
    started_at timestamptz NOT NULL,
    last_used_at timestamptz NOT NULL,
    -- What the member recognises the session by: the browser in plain words, and the address of its last use.
    browser text,
    address text,
    -- When the member last confirmed, in this session, who they are.
    confirmed_at timestamptz,
    -- The organisation whose pages the session shows. Null: the member has yet to choose one of several.
    organisation_id uuid,
    -- The secret that this session was shown for an authenticator app, until the app is turned on. Kept by session: no
    -- other session, such as a thief's, has seen it.
    offered_totp_secret bytea,
    -- Whether the member signed in with the provider of single sign-on, not with a password or a passkey.
    is_by_provider boolean NOT NULL DEFAULT false,
    -- When the provider last confirmed who the member is: a member with a second factor has to show that, too.
    provider_confirmed_at timestamptz,
    -- Whether the session stays in its organisation, because an administrator of another one ended the member's
    -- sessions there.
    is_bound boolean NOT NULL DEFAULT false,
    FOREIGN KEY (organisation_id, member_id) REFERENCES memberships (organisation_id, member_id) ON DELETE CASCADE
);

CREATE INDEX sessions_of_member ON sessions (member_id, organisation_id);

-- Sign-ins that wait for the second factor. Not in sessions, so that no query can mistake one for a session.
CREATE TABLE waiting_sign_ins (
    token_digest bytea PRIMARY KEY,
    member_id uuid NOT NULL REFERENCES members (id) ON DELETE CASCADE,
    started_at timestamptz NOT NULL,
    -- The invitation that the sign-in accepts, if any.
    invitation_digest bytea,
    -- The person at the provider of single sign-on, if the first step was taken there.
    provider_issuer text,
    provider_subject text,
    CHECK ((provider_issuer IS NULL) = (provider_subject IS NULL))
);

CREATE INDEX waiting_sign_ins_of_member ON waiting_sign_ins (member_id);

-- One-time links for choosing another password. A member has one at most: a later link replaces it.
CREATE TABLE password_resets (
    member_id uuid PRIMARY KEY REFERENCES members (id) ON DELETE CASCADE,
    token_digest bytea NOT NULL UNIQUE,
    expires_at timestamptz NOT NULL,
    -- The administrator who made the link. Null: an operator made it, or the member asked for it.
    issued_by uuid,
    -- Made by "Forgotten password?". Such a link cannot remove passkeys.
    is_asked_by_stranger boolean NOT NULL,
    -- The administrator's organisation. The link ends when the administrator or the member is removed from it.
    organisation_id uuid,
    -- If false, the link was shown to its creator. A link of an administrator works only while the member belongs to
    -- no other organisation.
    is_mailed boolean NOT NULL,
    FOREIGN KEY (organisation_id, issued_by) REFERENCES memberships (organisation_id, member_id) ON DELETE CASCADE,
    FOREIGN KEY (organisation_id, member_id) REFERENCES memberships (organisation_id, member_id) ON DELETE CASCADE,
    CHECK ((issued_by IS NULL) = (organisation_id IS NULL))
);

CREATE INDEX password_resets_of_maker ON password_resets (organisation_id, issued_by);

-- New email addresses that wait until the link mailed to them is opened. A member has one at most.
CREATE TABLE email_changes (
    member_id uuid PRIMARY KEY REFERENCES members (id) ON DELETE CASCADE,
    email text NOT NULL,
    token_digest bytea NOT NULL UNIQUE,
    expires_at timestamptz NOT NULL
);

CREATE TABLE recovery_codes (
    member_id uuid NOT NULL REFERENCES members (id) ON DELETE CASCADE,
    digest bytea NOT NULL,
    PRIMARY KEY (member_id, digest)
);

CREATE TABLE passkeys (
    -- SHA-256 of the credential's id, which can be long.
    digest bytea PRIMARY KEY,
    member_id uuid NOT NULL REFERENCES members (id) ON DELETE CASCADE,
    credential bytea NOT NULL,
    -- In the format SubjectPublicKeyInfo.
    public_key bytea NOT NULL,
    name text NOT NULL,
    created_at timestamptz NOT NULL,
    last_used_at timestamptz
);

CREATE INDEX passkeys_of_member ON passkeys (member_id);

-- Challenges for a sign-in by passkey alone, before the member is known. Each can be used once, within ten minutes.
CREATE TABLE passkey_challenges (
    token_digest bytea PRIMARY KEY,
    started_at timestamptz NOT NULL
);

-- The networks from which members have signed in, such as 203.0.113.0/24 or 2001:db8::/64. Sign-ins from there are
-- handled before those from unknown networks.
CREATE TABLE familiar_networks (
    member_id uuid NOT NULL REFERENCES members (id) ON DELETE CASCADE,
    network text NOT NULL,
    last_used_at timestamptz NOT NULL,
    PRIMARY KEY (member_id, network)
);
CREATE INDEX familiar_networks_network ON familiar_networks (network);

-- The browsers (such as "Firefox on Linux") and their networks with which members have signed in. A sign-in with any
-- other is reported to the member by mail.
CREATE TABLE known_browsers (
    member_id uuid NOT NULL REFERENCES members (id) ON DELETE CASCADE,
    browser text NOT NULL,
    network text NOT NULL,
    last_used_at timestamptz NOT NULL,
    PRIMARY KEY (member_id, browser, network)
);
