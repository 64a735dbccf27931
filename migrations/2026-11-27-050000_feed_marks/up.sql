-- What a run of the change feed has seen: the next transaction, and those that were running. Committed before anything is
-- given out, so that a mark is there exactly where the history that it saw is there.
CREATE TABLE feed_marks (
    organisation_id uuid NOT NULL,
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    -- Given: the feed tells only of patients that this API key created.
    key_id uuid,
    system_identifier bigint NOT NULL,
    next bigint NOT NULL,
    running bigint[] NOT NULL,
    made_at timestamptz NOT NULL DEFAULT now(),
    -- The same run has handed out a later mark.
    is_superseded boolean NOT NULL DEFAULT false,
    PRIMARY KEY (organisation_id, id)
);

CREATE INDEX feed_marks_by_time ON feed_marks (made_at);
