DROP FUNCTION feed_mark;
