DROP VIEW patients_v1;
