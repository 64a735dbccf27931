UPDATE origin SET audit_table = 'audit_entries'::regclass::oid::bigint;
