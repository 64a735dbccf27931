UPDATE origin SET audit_table = 0;
