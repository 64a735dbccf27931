-- By which a member recognises a session: the browser in plain words, and the address of its last use.
ALTER TABLE sessions ADD browser text, ADD address text;
