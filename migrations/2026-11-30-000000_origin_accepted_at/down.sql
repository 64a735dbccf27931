ALTER TABLE origin DROP COLUMN accepted_at;
