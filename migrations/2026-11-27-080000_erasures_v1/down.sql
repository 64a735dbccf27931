DROP VIEW erasures_v1;
