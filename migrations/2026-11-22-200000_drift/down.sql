DROP INDEX audit_entries_by_time;
ALTER TABLE audit_entries ALTER at DROP DEFAULT;
DROP POLICY only_unrevoked_change ON api_keys;
DROP POLICY anyone_adds ON api_keys;
DROP POLICY anyone_reads ON api_keys;
ALTER TABLE api_keys DISABLE ROW LEVEL SECURITY;
