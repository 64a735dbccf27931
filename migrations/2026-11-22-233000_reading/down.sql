DROP FUNCTION feed_record_export, feed_mark, feed_open, audit_now, feed_now, feed_number, feed_origin, feed_added;
DROP TABLE feed_marks;
DROP VIEW erasures_v1, patients_v1;
DROP TABLE readers;
