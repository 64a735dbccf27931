DROP TABLE waiting_sign_ins, recovery_codes;
ALTER TABLE members DROP totp_secret, DROP totp_used_step;
