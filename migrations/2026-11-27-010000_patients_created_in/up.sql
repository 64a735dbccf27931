-- A few kilobytes for millions of rows, and next to nothing on each insert. Ranges of 128 pages, because pages that are not
-- summarised yet are read whole, and autovacuum keeps no more than 256 requests to summarise a range.
CREATE INDEX patients_created_in ON patients USING brin (created_in) WITH (pages_per_range = 128, autosummarize = on);
