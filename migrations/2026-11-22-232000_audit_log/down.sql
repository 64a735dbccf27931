DROP FUNCTION origin_now;
DROP TABLE origin, audit_entries;
