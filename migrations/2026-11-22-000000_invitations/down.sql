DROP INDEX invitations_of_organisation;
ALTER TABLE invitations DROP invited_by;
