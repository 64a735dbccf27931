-- When somebody last said that the register is whole here: a service that remembers more than there is does not object to it
-- again.
ALTER TABLE origin ADD COLUMN accepted_at timestamptz NOT NULL DEFAULT now();
