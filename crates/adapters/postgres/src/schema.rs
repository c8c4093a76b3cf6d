//! The tables, as the migrations make them. A test holds this file against a migrated database.

diesel::table! {
    access_tokens (family_id, hash) {
        family_id -> Uuid,
        hash -> Bytea,
        created_at -> Timestamptz,
        expires_at -> Nullable<Timestamptz>,
        revoked_at -> Nullable<Timestamptz>,
        scopes -> Nullable<Int4>,
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
        attempts -> Int4,
        kind -> Text,
        recipient -> Text,
        recipient_name -> Text,
        url -> Nullable<Bytea>,
        expires_at -> Timestamptz,
    }
}

diesel::table! {
    api_usage (seller_id, client_id, hour, status) {
        seller_id -> Uuid,
        client_id -> Uuid,
        hour -> Timestamptz,
        last_at -> Timestamptz,
        calls -> Int8,
        status -> Int2,
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
        scopes -> Int4,
        status -> Text,
        rate_limit -> Nullable<Int4>,
        built_in -> Bool,
        secret_hash -> Nullable<Bytea>,
        created_at -> Timestamptz,
        updated_at -> Timestamptz,
        deleted_at -> Nullable<Timestamptz>,
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
    }
}

diesel::table! {
    authorization_codes (family_id, hash) {
        family_id -> Uuid,
        hash -> Bytea,
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
        id -> Int8,
        xid -> Int8,
        at -> Timestamptz,
        kind -> Text,
        offer_id -> Nullable<Uuid>,
        order_id -> Nullable<Uuid>,
        client_id -> Nullable<Uuid>,
        price_amount -> Nullable<Int8>,
        stock -> Nullable<Int4>,
        status -> Nullable<Text>,
    }
}

diesel::table! {
    connections (client_id, seller_id) {
        client_id -> Uuid,
        seller_id -> Uuid,
        generation -> Int4,
        connected_at -> Timestamptz,
        disconnected_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    consents (id) {
        id -> Uuid,
        seller_id -> Uuid,
        session_hash -> Bytea,
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
        duration_ms -> Nullable<Int4>,
        attempt -> Int2,
        response_status -> Nullable<Int2>,
        event -> Text,
        body -> Bytea,
        lost -> Int2,
        failure -> Nullable<Text>,
    }
}

diesel::table! {
    families (id) {
        id -> Uuid,
        seller_id -> Uuid,
        client_id -> Uuid,
        kind -> Text,
        scopes -> Int4,
        created_at -> Timestamptz,
        revoked_at -> Nullable<Timestamptz>,
        generation -> Nullable<Int4>,
    }
}

diesel::table! {
    flashes (session_hash, form) {
        session_hash -> Bytea,
        form -> Uuid,
        created_at -> Timestamptz,
        sealed -> Nullable<Bytea>,
    }
}

diesel::table! {
    idempotency (seller_id, key) {
        seller_id -> Uuid,
        fence -> Uuid,
        created_at -> Timestamptz,
        expires_at -> Timestamptz,
        status -> Nullable<Int2>,
        key -> Text,
        fingerprint -> Bytea,
        body -> Nullable<Bytea>,
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
    links (hash) {
        hash -> Bytea,
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
        attempts -> Int4,
        order_number -> Text,
        recipient -> Text,
        recipient_name -> Nullable<Text>,
        carrier -> Text,
        tracking_number -> Text,
    }
}

diesel::table! {
    offers (seller_id, id) {
        seller_id -> Uuid,
        id -> Uuid,
        created_at -> Timestamptz,
        updated_at -> Timestamptz,
        price_amount -> Nullable<Int8>,
        stock -> Nullable<Int4>,
        status -> Text,
        price_source -> Nullable<Text>,
        title -> Text,
        handle -> Text,
        ean -> Nullable<Text>,
        brand -> Nullable<Text>,
        signature -> Nullable<Text>,
        thumbnail -> Nullable<Text>,
        url -> Text,
    }
}

diesel::table! {
    operator_tokens (id) {
        id -> Uuid,
        name -> Text,
        hash -> Bytea,
        created_at -> Timestamptz,
        revoked_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    orders (order_id) {
        order_id -> Uuid,
        number -> Text,
        is_test -> Bool,
        created_at -> Timestamptz,
        buyer_erased_at -> Nullable<Timestamptz>,
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
    personal_tokens (seller_id, id) {
        seller_id -> Uuid,
        id -> Uuid,
        name -> Text,
        created_at -> Timestamptz,
    }
}

diesel::table! {
    rate_windows (window_start, kind, subject) {
        window_start -> Timestamptz,
        kind -> Int2,
        subject -> Uuid,
        used -> Int8,
    }
}

diesel::table! {
    refresh_tokens (family_id, hash) {
        family_id -> Uuid,
        hash -> Bytea,
        created_at -> Timestamptz,
        expires_at -> Timestamptz,
        used_at -> Nullable<Timestamptz>,
        scopes -> Int4,
    }
}

diesel::table! {
    schema_facts (version) {
        version -> Text,
        oldest_binary -> Text,
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
    }
}

diesel::table! {
    sellers (id) {
        id -> Uuid,
        seller_no -> Int4,
        name -> Text,
        email -> Text,
        password_hash -> Nullable<Text>,
        created_at -> Timestamptz,
        closed_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    sessions (hash) {
        hash -> Bytea,
        seller_id -> Uuid,
        created_at -> Timestamptz,
        seen_at -> Timestamptz,
    }
}

diesel::table! {
    subscription_quota (seller_id, client_id) {
        seller_id -> Uuid,
        client_id -> Uuid,
        used -> Int4,
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
        connection_generation -> Nullable<Int4>,
        active -> Bool,
        leased -> Bool,
        url -> Text,
        events -> Array<Text>,
        secret -> Bytea,
        failing -> Bool,
        in_hand -> Array<Uuid>,
    }
}

diesel::joinable!(applications -> sellers (owner_id));
diesel::joinable!(links -> sellers (seller_id));

diesel::allow_tables_to_appear_in_same_query!(
    access_tokens,
    applications,
    families,
    links,
    offers,
    operator_tokens,
    personal_tokens,
    sellers,
);

diesel::define_sql_function! {
    /// The database's clock, the one that processes compare by.
    fn api_now() -> diesel::sql_types::Timestamptz;
}

diesel::define_sql_function! {
    /// The first of two instants that is there.
    #[sql_name = "coalesce"]
    fn coalesce_instant(
        first: diesel::sql_types::Nullable<diesel::sql_types::Timestamptz>,
        second: diesel::sql_types::Timestamptz,
    ) -> diesel::sql_types::Nullable<diesel::sql_types::Timestamptz>;
}

diesel::define_sql_function! {
    /// A text without regard to case.
    fn lower(text: diesel::sql_types::Text) -> diesel::sql_types::Text;
}
