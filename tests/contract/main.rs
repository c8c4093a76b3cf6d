//! What the two listeners answer, rule by rule of the contract.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod account;
mod at_rest;
mod authorization;
mod authorize_limits;
mod authorize_parameters;
mod buyer_erasure;
mod caps;
mod carrier_says;
mod changes;
mod code_exchange;
mod consent_meanwhile;
mod consent_screen;
mod crowds;
mod cursors;
mod docs;
mod documented;
mod form_numbers;
mod grant_crowds;
mod grant_races;
mod grants_end;
mod idempotency_claims;
mod idempotency_kept;
mod idempotency_keys;
mod idempotency_office;
mod import;
mod invalidation;
mod never_told;
mod new_passwords;
mod offer_fields;
mod offer_format;
mod offer_ids;
mod offer_lists;
mod offer_pages;
mod offer_queries;
mod office_access;
mod office_applications;
mod office_json;
mod office_links;
mod office_moves;
mod office_offers;
mod office_order_moves;
mod office_orders;
mod office_sellers;
mod office_shipments;
mod office_tokens;
mod once;
mod order_cursors;
mod order_lists;
mod order_of_checks;
mod order_read;
mod order_views;
mod panel_forms;
mod panel_limits;
mod panel_pages;
mod panel_rules;
mod panel_sessions;
mod panel_sign_in;
mod panel_usage;
mod patch_effects;
mod patch_rules;
mod paths;
mod rate_limit;
mod rate_limit_shared;
mod refreshing;
mod response_headers;
mod revoking;
mod route_token_matrix;
mod shipments;
mod threats;
mod token_clients;
mod token_crowds;
mod token_endpoint;
mod token_limits;
mod token_metadata;
mod token_requests;
mod token_scopes;
mod trace_ids;
mod undisturbed;
mod user_agents;
mod webhook_addresses;
mod webhook_creation;
mod webhook_events;
mod webhook_holds;
mod webhook_keys;
mod webhook_lists;
mod webhook_panel;
mod webhook_retries;

use blackbox::{Trader, World};
use chrono::{DateTime, Utc};
use serde_json::json;

const PROGRAM: &str = env!("CARGO_BIN_EXE_seller-api-blackbox");

/// A world with the contract's limits.
async fn world() -> World {
    World::start(PROGRAM).await
}

/// A world in which the token endpoint is asked often.
async fn world_of_many_tokens() -> World {
    World::with(PROGRAM, |options| {
        options
            .set("SELLER_API__OAUTH__TOKEN_LIMIT_PER_IP", 100_000)
            .set("SELLER_API__OAUTH__TOKEN_LIMIT_PER_CLIENT", 100_000)
    })
    .await
}

/// A world in which consents are asked for and tokens exchanged often.
async fn world_of_consent() -> World {
    World::with(PROGRAM, |options| {
        options
            .set("SELLER_API__OAUTH__TOKEN_LIMIT_PER_IP", 100_000)
            .set("SELLER_API__OAUTH__TOKEN_LIMIT_PER_CLIENT", 100_000)
            .set("SELLER_API__OAUTH__AUTHORIZE_LIMIT_PER_IP", 100_000)
    })
    .await
}

/// A world with a trader and an offer of theirs.
async fn world_of_trade() -> (World, Trader, String) {
    let world = world().await;
    let trader = world.trader().await;
    let offer = world.any_offer(&trader.seller, json!({})).await;
    (world, trader, offer)
}

/// An instant as RFC 3339 writes it.
fn instant(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}
