DROP FUNCTION origin_now;
DROP TABLE origin;
