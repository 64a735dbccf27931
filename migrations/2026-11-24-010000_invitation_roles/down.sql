ALTER TABLE invitations DROP role;
