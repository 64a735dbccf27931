-- The transaction that stored the patient, savepoints included: by it a change feed tells what was committed since it last
-- looked. Filled by its default, whatever version of the service inserts; no row is rewritten, and those that are there get
-- the number of this migration.
ALTER TABLE patients ADD created_in bigint NOT NULL DEFAULT txid_current();
