DROP TABLE passkey_challenges;
