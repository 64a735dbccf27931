DROP TABLE known_browsers, familiar_networks, passkey_challenges, passkeys, recovery_codes;
DROP TABLE email_changes, password_resets, waiting_sign_ins, sessions, invitations, memberships, members;
