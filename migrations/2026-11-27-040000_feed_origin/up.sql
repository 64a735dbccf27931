-- The PostgreSQL cluster in which the numbers of transactions count. A dump that is restored into another one brings along
-- numbers that mean nothing there. What is added to the numbers of this cluster keeps them above all that came along.
CREATE TABLE feed_origin (
    is_only_row boolean PRIMARY KEY DEFAULT true CHECK (is_only_row),
    system_identifier bigint NOT NULL,
    added bigint NOT NULL
);

INSERT INTO feed_origin (system_identifier, added) SELECT system_identifier, 0 FROM pg_control_system();
