-- The API key by which the patient came; null for those that were stored before this was kept.
ALTER TABLE patients ADD key_id uuid;
