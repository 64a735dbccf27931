DROP FUNCTION feed_now;
