-- The role with which a guest was invited, or joined. NULL: it is about something else, or was recorded before this was
-- kept.
ALTER TABLE audit_entries ADD COLUMN role text;
