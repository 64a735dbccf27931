DROP INDEX patients_created_in;
