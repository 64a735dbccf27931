ALTER TABLE patients DROP key_id;
