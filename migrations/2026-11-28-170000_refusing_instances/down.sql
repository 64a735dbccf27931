ALTER TABLE key_refusals DROP COLUMN instance;
