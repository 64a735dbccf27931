DROP RULE known_already ON key_homes;
