-- The number of the table of audit entries: a dump that is restored, even in the same cluster, makes tables with other numbers.
ALTER TABLE origin ADD audit_table bigint NOT NULL DEFAULT 0;
