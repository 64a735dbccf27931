ALTER TABLE password_resets DROP issued_by;
