-- The last refusals of each key, without anything of what was sent. A request id comes from its sender: it may come again.
CREATE TABLE key_refusals (
    organisation_id uuid NOT NULL,
    key_id uuid NOT NULL,
    at timestamptz NOT NULL,
    request_id text NOT NULL,
    status integer NOT NULL,
    reason text NOT NULL,
    PRIMARY KEY (organisation_id, key_id, at, request_id)
);
