//! The tables as the query builder sees them, made from the migrated database:
//! `RENEW=1 cargo test -p adapter-postgres schema` renews them, and without `RENEW` compares.

diesel::define_sql_function! {
    /// The current time, which all processes share.
    fn api_now() -> Timestamptz;
}

diesel::allow_tables_to_appear_in_same_query!(applications, sellers, sessions);
diesel::allow_tables_to_appear_in_same_query!(orders, seller_orders);

diesel::table! {
    access_tokens (family_id, hash) {
        family_id -> Uuid,
        hash -> Binary,
        created_at -> Timestamptz,
        expires_at -> Nullable<Timestamptz>,
        revoked_at -> Nullable<Timestamptz>,
        scopes -> Nullable<Integer>,
    }
}

diesel::table! {
    account_mails (id) {
        id -> Uuid,
        seller_id -> Uuid,
        created_at -> Timestamptz,
        due_at -> Nullable<Timestamptz>,
        sent_at -> Nullable<Timestamptz>,
        dead_at -> Nullable<Timestamptz>,
        fence -> Nullable<Uuid>,
        attempts -> Integer,
        kind -> Text,
        recipient -> Text,
        recipient_name -> Text,
        url -> Nullable<Binary>,
        expires_at -> Timestamptz,
    }
}

diesel::table! {
    api_usage (seller_id, client_id, hour, status) {
        seller_id -> Uuid,
        client_id -> Uuid,
        hour -> Timestamptz,
        last_at -> Timestamptz,
        calls -> BigInt,
        status -> SmallInt,
    }
}

diesel::table! {
    application_usage (client_id, hour, status) {
        client_id -> Uuid,
        hour -> Timestamptz,
        calls -> BigInt,
        status -> SmallInt,
    }
}

diesel::table! {
    applications (client_id) {
        client_id -> Uuid,
        owner_id -> Uuid,
        name -> Text,
        description -> Nullable<Text>,
        documentation_url -> Nullable<Text>,
        purpose -> Text,
        client_type -> Text,
        redirect_uris -> Array<Text>,
        scopes -> Integer,
        status -> Text,
        rate_limit -> Nullable<Integer>,
        built_in -> Bool,
        secret_hash -> Nullable<Binary>,
        created_at -> Timestamptz,
        updated_at -> Timestamptz,
        deleted_at -> Nullable<Timestamptz>,
        token_generation -> Integer,
        granted_scopes -> Nullable<Integer>,
        requested_scopes -> Integer,
    }
}

diesel::table! {
    audit_log (id) {
        id -> Uuid,
        at -> Timestamptz,
        actor_id -> Nullable<Uuid>,
        actor -> Text,
        address -> Nullable<Text>,
        action -> Text,
        subject -> Text,
        os_user -> Nullable<Text>,
        changes -> Nullable<Json>,
    }
}

diesel::table! {
    authorization_codes (family_id, hash) {
        family_id -> Uuid,
        hash -> Binary,
        created_at -> Timestamptz,
        expires_at -> Timestamptz,
        used_at -> Nullable<Timestamptz>,
        redirect_uri -> Text,
        code_challenge -> Text,
    }
}

diesel::table! {
    changes (seller_id, id) {
        seller_id -> Uuid,
        id -> BigInt,
        xid -> BigInt,
        at -> Timestamptz,
        kind -> Text,
        offer_id -> Nullable<Uuid>,
        order_id -> Nullable<Uuid>,
        client_id -> Nullable<Uuid>,
        price_amount -> Nullable<BigInt>,
        stock -> Nullable<Integer>,
        status -> Nullable<Text>,
    }
}

diesel::table! {
    connections (client_id, seller_id) {
        client_id -> Uuid,
        seller_id -> Uuid,
        generation -> Integer,
        connected_at -> Timestamptz,
        disconnected_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    consents (id) {
        id -> Uuid,
        seller_id -> Uuid,
        session_hash -> Binary,
        expires_at -> Timestamptz,
        decided_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    deliveries (seller_id, subscription_id, id) {
        seller_id -> Uuid,
        subscription_id -> Uuid,
        id -> Uuid,
        created_at -> Timestamptz,
        due_at -> Nullable<Timestamptz>,
        delivered_at -> Nullable<Timestamptz>,
        duration_ms -> Nullable<Integer>,
        attempt -> SmallInt,
        response_status -> Nullable<SmallInt>,
        event -> Text,
        body -> Binary,
        lost -> SmallInt,
        failure -> Nullable<Text>,
        lost_after -> Nullable<SmallInt>,
    }
}

diesel::table! {
    earlier_links (hash) {
        hash -> Binary,
        seller_id -> Uuid,
        kind -> Text,
        expires_at -> Timestamptz,
    }
}

diesel::table! {
    families (id) {
        id -> Uuid,
        seller_id -> Uuid,
        client_id -> Uuid,
        kind -> Text,
        scopes -> Integer,
        created_at -> Timestamptz,
        revoked_at -> Nullable<Timestamptz>,
        generation -> Nullable<Integer>,
        application_generation -> Integer,
        seller_generation -> Integer,
    }
}

diesel::table! {
    flashes (session_hash, form) {
        session_hash -> Binary,
        form -> Uuid,
        created_at -> Timestamptz,
        sealed -> Nullable<Binary>,
    }
}

diesel::table! {
    follow_ups (id) {
        id -> BigInt,
        due_at -> Timestamptz,
        seller_id -> Nullable<Uuid>,
        client_id -> Nullable<Uuid>,
    }
}

diesel::table! {
    idempotency (seller_id, key) {
        seller_id -> Uuid,
        fence -> Uuid,
        created_at -> Timestamptz,
        expires_at -> Timestamptz,
        status -> Nullable<SmallInt>,
        key -> Text,
        fingerprint -> Binary,
        body -> Nullable<Binary>,
        etag -> Nullable<Text>,
    }
}

diesel::table! {
    instance (key) {
        key -> Text,
        value -> Text,
        set_at -> Timestamptz,
    }
}

diesel::table! {
    journal (seller_id, number) {
        seller_id -> Uuid,
        number -> BigInt,
        id -> Uuid,
        event -> Text,
        occurred_at -> Timestamptz,
        recorded_at -> Timestamptz,
        order_id -> Nullable<Uuid>,
        order_number -> Nullable<Text>,
        offer_id -> Nullable<Uuid>,
    }
}

diesel::table! {
    journals (seller_id) {
        seller_id -> Uuid,
        last_number -> BigInt,
        recorded_at -> Timestamptz,
    }
}

diesel::table! {
    links (hash) {
        hash -> Binary,
        seller_id -> Uuid,
        kind -> Text,
        expires_at -> Timestamptz,
    }
}

diesel::table! {
    mails (id) {
        id -> Uuid,
        order_id -> Uuid,
        created_at -> Timestamptz,
        due_at -> Nullable<Timestamptz>,
        sent_at -> Nullable<Timestamptz>,
        dead_at -> Nullable<Timestamptz>,
        fence -> Nullable<Uuid>,
        attempts -> Integer,
        order_number -> Text,
        recipient -> Text,
        recipient_name -> Nullable<Text>,
        carrier -> Text,
        tracking_number -> Text,
        is_correction -> Bool,
    }
}

diesel::table! {
    offers (seller_id, id) {
        seller_id -> Uuid,
        id -> Uuid,
        created_at -> Timestamptz,
        updated_at -> Timestamptz,
        price_amount -> Nullable<BigInt>,
        stock -> Nullable<Integer>,
        status -> Text,
        price_source -> Nullable<Text>,
        title -> Text,
        handle -> Text,
        ean -> Nullable<Text>,
        brand -> Nullable<Text>,
        signature -> Nullable<Text>,
        thumbnail -> Nullable<Text>,
        url -> Text,
        external_id -> Nullable<Text>,
    }
}

diesel::table! {
    operator_tokens (id) {
        id -> Uuid,
        name -> Text,
        hash -> Binary,
        created_at -> Timestamptz,
        revoked_at -> Nullable<Timestamptz>,
        used_at -> Nullable<Timestamptz>,
        expires_at -> Nullable<Timestamptz>,
        read_only -> Bool,
    }
}

diesel::table! {
    orders (order_id) {
        order_id -> Uuid,
        number -> Text,
        is_test -> Bool,
        created_at -> Timestamptz,
        buyer_erased_at -> Nullable<Timestamptz>,
        sellers -> Nullable<Array<Uuid>>,
    }
}

diesel::table! {
    parcels (seller_id, order_id) {
        seller_id -> Uuid,
        order_id -> Uuid,
        shipped_at -> Timestamptz,
        due_at -> Timestamptz,
        fence -> Nullable<Uuid>,
        carrier -> Text,
        tracking_number -> Text,
    }
}

diesel::table! {
    rate_windows (window_start, kind, subject) {
        window_start -> Timestamptz,
        kind -> SmallInt,
        subject -> Uuid,
        used -> BigInt,
    }
}

diesel::table! {
    refresh_tokens (family_id, hash) {
        family_id -> Uuid,
        hash -> Binary,
        created_at -> Timestamptz,
        expires_at -> Timestamptz,
        used_at -> Nullable<Timestamptz>,
        scopes -> Integer,
    }
}

diesel::table! {
    seller_orders (seller_id, order_id) {
        seller_id -> Uuid,
        order_id -> Uuid,
        placed_at -> Timestamptz,
        updated_at -> Timestamptz,
        paid_at -> Nullable<Timestamptz>,
        shipped_at -> Nullable<Timestamptz>,
        delivered_at -> Nullable<Timestamptz>,
        cancelled_at -> Nullable<Timestamptz>,
        shipment_id -> Nullable<Uuid>,
        shipment_at -> Nullable<Timestamptz>,
        is_test -> Bool,
        several_sellers -> Bool,
        delivered_already -> Nullable<Bool>,
        buyer_notified -> Nullable<Bool>,
        status -> Text,
        number -> Text,
        carrier -> Nullable<Text>,
        tracking_number -> Nullable<Text>,
        tracking_status -> Nullable<Text>,
        payment_method -> Nullable<Text>,
        delivery_method -> Nullable<Text>,
        buyer -> Nullable<Json>,
        shipping_address -> Nullable<Json>,
        items -> Json,
        corrections_left -> Nullable<SmallInt>,
        delivery_point -> Nullable<Json>,
        invoice -> Nullable<Json>,
        items_length -> Nullable<Integer>,
    }
}

diesel::table! {
    sellers (id) {
        id -> Uuid,
        seller_no -> Integer,
        name -> Text,
        email -> Text,
        password_hash -> Nullable<Text>,
        created_at -> Timestamptz,
        closed_at -> Nullable<Timestamptz>,
        token_generation -> Integer,
        session_generation -> Integer,
    }
}

diesel::table! {
    sessions (hash) {
        hash -> Binary,
        seller_id -> Uuid,
        created_at -> Timestamptz,
        seen_at -> Timestamptz,
        generation -> Integer,
    }
}

diesel::table! {
    subscriptions (seller_id, id) {
        seller_id -> Uuid,
        id -> Uuid,
        client_id -> Uuid,
        created_at -> Timestamptz,
        wake_at -> Nullable<Timestamptz>,
        fence -> Nullable<Uuid>,
        connection_generation -> Nullable<Integer>,
        active -> Bool,
        leased -> Bool,
        url -> Text,
        events -> Array<Text>,
        secret -> Binary,
        failing -> Bool,
        in_hand -> Array<Uuid>,
        none_due_before -> Nullable<Timestamptz>,
        is_ending -> Bool,
    }
}
