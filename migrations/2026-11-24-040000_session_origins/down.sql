ALTER TABLE sessions DROP browser, DROP address;
