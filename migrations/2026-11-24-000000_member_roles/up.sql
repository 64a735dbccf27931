-- Who is a member already may do what every member could until then. A program that knows no roles adds administrators.
ALTER TABLE members ADD role text NOT NULL DEFAULT 'administrator';
