//! The tables as Diesel sees them; the migrations make them. Kept equal by a test that reads the catalogue.

diesel::table! {
    environment_stamp (is_only_row) {
        is_only_row -> Bool,
        environment -> Text,
    }
}

diesel::table! {
    organisations (id) {
        id -> Uuid,
        name -> Text,
        created_at -> Timestamptz,
        second_factor_required -> Bool,
        suspended_at -> Nullable<Timestamptz>,
        closed_at -> Nullable<Timestamptz>,
        key_days_max -> Nullable<Integer>,
        time_zone -> Text,
        erased_patients -> BigInt,
    }
}

// On one PostgreSQL a view of the organisations.
diesel::table! {
    organisation_states (organisation_id) {
        organisation_id -> Uuid,
        suspended_at -> Nullable<Timestamptz>,
        closed_at -> Nullable<Timestamptz>,
        key_days_max -> Nullable<Integer>,
    }
}

diesel::table! {
    api_keys (organisation_id, id) {
        id -> Uuid,
        organisation_id -> Uuid,
        name -> Text,
        digest -> Binary,
        hint -> Text,
        created_at -> Timestamptz,
        expires_at -> Nullable<Timestamptz>,
        revoked_at -> Nullable<Timestamptz>,
        created_by -> Nullable<Text>,
        revoked_by -> Nullable<Text>,
        replaces -> Nullable<Uuid>,
        replaced_ends_after -> Nullable<Interval>,
        note -> Nullable<Text>,
        contact -> Nullable<Text>,
        expiry_announced_at -> Nullable<Timestamptz>,
        suspended_at -> Nullable<Timestamptz>,
        paused_at -> Nullable<Timestamptz>,
        paused_by -> Nullable<Text>,
        allowed_networks -> Nullable<Array<Cidr>>,
        stopped_in -> Nullable<Uuid>,
    }
}

// On one PostgreSQL a view of the keys, without the first column.
diesel::table! {
    key_homes (home, digest) {
        home -> Uuid,
        digest -> Binary,
        organisation_id -> Uuid,
        key_id -> Uuid,
    }
}

diesel::table! {
    members (id) {
        id -> Uuid,
        email -> Text,
        email_folded -> Text,
        email_proved_at -> Nullable<Timestamptz>,
        email_proved_by -> Nullable<Text>,
        provider_issuer -> Nullable<Text>,
        provider_subject -> Nullable<Text>,
        name -> Text,
        password_hash -> Nullable<Text>,
        totp_secret -> Nullable<Binary>,
        totp_used_step -> Nullable<BigInt>,
        wrong_codes -> Integer,
    }
}

diesel::table! {
    memberships (organisation_id, member_id) {
        organisation_id -> Uuid,
        member_id -> Uuid,
        role -> Text,
        joined_at -> Timestamptz,
    }
}

diesel::table! {
    recovery_codes (member_id, digest) {
        member_id -> Uuid,
        digest -> Binary,
    }
}

diesel::table! {
    invitations (token_digest) {
        token_digest -> Binary,
        organisation_id -> Uuid,
        email -> Text,
        expires_at -> Timestamptz,
        accepted_by -> Nullable<Uuid>,
        invited_by -> Nullable<Uuid>,
        role -> Text,
        is_mailed -> Bool,
    }
}

diesel::table! {
    sessions (token_digest) {
        token_digest -> Binary,
        member_id -> Uuid,
        started_at -> Timestamptz,
        last_used_at -> Timestamptz,
        browser -> Nullable<Text>,
        address -> Nullable<Text>,
        confirmed_at -> Nullable<Timestamptz>,
        organisation_id -> Nullable<Uuid>,
        offered_totp_secret -> Nullable<Binary>,
        is_by_provider -> Bool,
        provider_confirmed_at -> Nullable<Timestamptz>,
        is_bound -> Bool,
    }
}

diesel::table! {
    passkeys (digest) {
        digest -> Binary,
        member_id -> Uuid,
        credential -> Binary,
        public_key -> Binary,
        name -> Text,
        created_at -> Timestamptz,
        last_used_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    passkey_challenges (token_digest) {
        token_digest -> Binary,
        started_at -> Timestamptz,
    }
}

diesel::table! {
    waiting_sign_ins (token_digest) {
        token_digest -> Binary,
        member_id -> Uuid,
        started_at -> Timestamptz,
        invitation_digest -> Nullable<Binary>,
        provider_issuer -> Nullable<Text>,
        provider_subject -> Nullable<Text>,
    }
}

diesel::table! {
    password_resets (member_id) {
        member_id -> Uuid,
        token_digest -> Binary,
        expires_at -> Timestamptz,
        issued_by -> Nullable<Uuid>,
        is_asked_by_stranger -> Bool,
        organisation_id -> Nullable<Uuid>,
        is_mailed -> Bool,
    }
}

diesel::table! {
    familiar_networks (member_id, network) {
        member_id -> Uuid,
        network -> Text,
        last_used_at -> Timestamptz,
    }
}

diesel::table! {
    email_changes (member_id) {
        member_id -> Uuid,
        email -> Text,
        token_digest -> Binary,
        expires_at -> Timestamptz,
    }
}

diesel::table! {
    known_browsers (member_id, browser, network) {
        member_id -> Uuid,
        browser -> Text,
        network -> Text,
        last_used_at -> Timestamptz,
    }
}

diesel::table! {
    audit_entries (organisation_id, id) {
        organisation_id -> Uuid,
        id -> Uuid,
        at -> Timestamptz,
        action -> Text,
        actor -> Nullable<Text>,
        subject -> Text,
        address -> Nullable<Text>,
        actor_id -> Nullable<Uuid>,
        actor_email -> Nullable<Text>,
        operator -> Nullable<Text>,
        reason -> Nullable<Text>,
        key_id -> Nullable<Uuid>,
        key_hint -> Nullable<Text>,
        replaced_key_id -> Nullable<Uuid>,
        key_expires_at -> Nullable<Timestamptz>,
        idempotency_digest -> Nullable<Binary>,
        recorded_in -> BigInt,
        role -> Nullable<Text>,
    }
}

diesel::table! {
    key_uses (organisation_id, key_id) {
        organisation_id -> Uuid,
        key_id -> Uuid,
        last_used_at -> Nullable<Timestamptz>,
        sent_in_clear_at -> Nullable<Timestamptz>,
        last_address -> Nullable<Text>,
        last_program -> Nullable<Text>,
        resumed_at -> Nullable<Timestamptz>,
        silence_announced_at -> Nullable<Timestamptz>,
        refusals_announced_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    key_watches (part) {
        part -> Integer,
        since -> Timestamptz,
        looked_at -> Timestamptz,
    }
}

diesel::table! {
    key_answers (organisation_id, key_id, day, local_day, status, field) {
        organisation_id -> Uuid,
        key_id -> Uuid,
        day -> Date,
        local_day -> Date,
        status -> Integer,
        field -> Text,
        count -> BigInt,
    }
}

diesel::table! {
    key_refusals (organisation_id, key_id, at, request_id) {
        organisation_id -> Uuid,
        key_id -> Uuid,
        at -> Timestamptz,
        request_id -> Text,
        status -> Integer,
        reason -> Text,
        address -> Nullable<Text>,
        fields -> Array<Text>,
        is_simulated -> Bool,
        instance -> Nullable<Text>,
    }
}

diesel::table! {
    patients (organisation_id, id) {
        organisation_id -> Uuid,
        id -> Uuid,
        first_name -> Text,
        last_name -> Text,
        phone_number -> Text,
        date_of_birth -> Date,
        email -> Nullable<Text>,
        address_line1 -> Nullable<Text>,
        address_line2 -> Nullable<Text>,
        suburb -> Nullable<Text>,
        state -> Nullable<Text>,
        postcode -> Nullable<Text>,
        country -> Nullable<Text>,
        created_at -> Timestamptz,
        updated_at -> Timestamptz,
        idempotency_key -> Nullable<Text>,
        request_digest -> Nullable<Binary>,
        created_in -> BigInt,
        key_id -> Nullable<Uuid>,
    }
}

diesel::table! {
    erasures (organisation_id, patient_id) {
        organisation_id -> Uuid,
        patient_id -> Uuid,
        erased_at -> Timestamptz,
        erased_in -> BigInt,
        key_id -> Nullable<Uuid>,
        idempotency_digest -> Nullable<Binary>,
    }
}

diesel::table! {
    origin (is_only_row) {
        is_only_row -> Bool,
        system_identifier -> BigInt,
        timeline -> Text,
        added -> BigInt,
        accepted_at -> Timestamptz,
        audit_table -> BigInt,
        acceptances -> Array<Uuid>,
    }
}

diesel::table! {
    feed_marks (organisation_id, id) {
        organisation_id -> Uuid,
        id -> Uuid,
        key_id -> Nullable<Uuid>,
        system_identifier -> BigInt,
        next -> BigInt,
        running -> Array<BigInt>,
        made_at -> Timestamptz,
        superseded_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    readers (role) {
        role -> Text,
        organisation_id -> Nullable<Uuid>,
    }
}

diesel::allow_tables_to_appear_in_same_query!(api_keys, key_uses);
diesel::allow_tables_to_appear_in_same_query!(
    email_changes,
    familiar_networks,
    invitations,
    known_browsers,
    members,
    memberships,
    organisations,
    passkeys,
    password_resets,
    sessions,
    waiting_sign_ins
);
diesel::joinable!(invitations -> organisations (organisation_id));
diesel::joinable!(memberships -> organisations (organisation_id));
diesel::joinable!(memberships -> members (member_id));
diesel::joinable!(email_changes -> members (member_id));
diesel::joinable!(passkeys -> members (member_id));
diesel::joinable!(password_resets -> members (member_id));
diesel::joinable!(sessions -> members (member_id));
diesel::joinable!(waiting_sign_ins -> members (member_id));
