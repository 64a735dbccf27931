DROP INDEX newest_audit_entry;
