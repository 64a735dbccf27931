DROP TABLE key_refusals;
