-- The database roles that may read patients through the views; null: those of all organisations.
CREATE TABLE readers (
    role text PRIMARY KEY,
    organisation_id uuid REFERENCES organisations (id)
);
