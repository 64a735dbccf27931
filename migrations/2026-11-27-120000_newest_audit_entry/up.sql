-- The newest entry of all organisations: by it a running service knows a database again.
CREATE INDEX newest_audit_entry ON audit_entries (at);
