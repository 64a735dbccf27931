DROP FUNCTION feed_open;
