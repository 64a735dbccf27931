ALTER TABLE invitations ADD role text NOT NULL DEFAULT 'administrator';
