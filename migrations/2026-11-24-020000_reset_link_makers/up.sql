-- The member who made the link, and with whom it ends; null: an operator did.
ALTER TABLE password_resets ADD issued_by uuid REFERENCES members (id) ON DELETE CASCADE;
