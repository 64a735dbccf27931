DROP TABLE feed_origin;
