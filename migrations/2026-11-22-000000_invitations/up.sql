-- Who made the invitation, which ends with that member; null: an operator. Column and rule apart, because a database that is
-- spread over nodes takes them one by one.
ALTER TABLE invitations ADD invited_by uuid;

ALTER TABLE invitations ADD CONSTRAINT invitations_invited_by_fkey
FOREIGN KEY (invited_by) REFERENCES members (id) ON DELETE CASCADE;

CREATE INDEX invitations_of_member ON invitations (invited_by);

CREATE INDEX invitations_of_organisation ON invitations (organisation_id, expires_at);
