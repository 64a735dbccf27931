DROP VIEW key_homes;
