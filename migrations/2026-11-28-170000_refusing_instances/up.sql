-- The instance that refused the request, by the name of its machine. Null: written by an earlier program.
ALTER TABLE key_refusals ADD COLUMN instance text;
