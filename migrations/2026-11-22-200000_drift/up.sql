-- What the service's role may not change is not left to the service: a revoked key stays revoked, whoever asks.
ALTER TABLE api_keys ENABLE ROW LEVEL SECURITY;
CREATE POLICY anyone_reads ON api_keys FOR SELECT USING (true);
CREATE POLICY anyone_adds ON api_keys FOR INSERT WITH CHECK (true);
CREATE POLICY only_unrevoked_change ON api_keys FOR UPDATE USING (revoked_at IS NULL) WITH CHECK (true);
-- The moment of a deed is the database's own, and the service's role cannot write another one.
ALTER TABLE audit_entries ALTER at SET DEFAULT now();
CREATE INDEX audit_entries_by_time ON audit_entries (organisation_id, at, id);
