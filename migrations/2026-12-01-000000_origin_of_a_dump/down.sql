ALTER TABLE origin DROP COLUMN audit_table;
