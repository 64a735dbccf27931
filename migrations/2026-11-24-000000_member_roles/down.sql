ALTER TABLE members DROP role;
