ALTER TABLE patients DROP created_in;
