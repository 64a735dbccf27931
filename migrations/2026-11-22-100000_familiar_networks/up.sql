-- Where members have signed in from: their sign-ins from there go before those of strangers.
CREATE TABLE familiar_networks (
    member_id uuid NOT NULL REFERENCES members (id) ON DELETE CASCADE,
    -- As 203.0.113.0/24 or 2001:db8::/64.
    network text NOT NULL,
    last_used_at timestamptz NOT NULL,
    PRIMARY KEY (member_id, network)
);
