ALTER TABLE origin DROP COLUMN acceptances;
