-- One for the migration and one for each time at which an operator confirmed that the register is complete here, the
-- newest last. A database whose acceptances are the first of those that a service has seen is an earlier copy.
-- `accepted_at` is for programs of before this column.
ALTER TABLE origin ADD COLUMN acceptances uuid[] NOT NULL DEFAULT ARRAY[gen_random_uuid()];
