//! Tests of the two listeners, rule by rule of the contract.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod account;
mod account_links;
mod at_rest;
mod authorization;
mod authorize_parameters;
mod caps;
mod carrier_answers;
mod changes;
mod code_exchange;
mod concurrent_requests;
mod conditional_changes;
mod consent_screen;
mod corrections;
mod cursors;
mod docs;
mod documented;
mod exchange_checks;
mod form_numbers;
mod grant_races;
mod headers;
mod idempotency_claims;
mod idempotency_keys;
mod import;
mod invalidation;
mod journal;
mod offer_batch;
mod offer_format;
mod offer_lists;
mod office_access;
mod office_applications;
mod office_offers;
mod office_order_moves;
mod office_orders;
mod office_sellers;
mod office_tokens;
mod order_lists;
mod order_of_checks;
mod order_read;
mod panel_forms;
mod panel_pages;
mod panel_rules;
mod panel_sign_in;
mod patch_effects;
mod patch_rules;
mod paths;
mod rate_limit;
mod rate_limit_shared;
mod refreshing;
mod revoking;
mod route_token_matrix;
mod secret_leaks;
mod shipments;
mod threats;
mod token_clients;
mod token_endpoint;
mod token_limits;
mod token_requests;
mod webhook_addresses;
mod webhook_by_hand;
mod webhook_changes;
mod webhook_creation;
mod webhook_events;
mod webhook_lists;
mod webhook_panel;
mod webhook_retries;
mod webhook_rotation;
mod webhook_suspension;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use blackbox::{Application, Expect, Member, Trader, World, local_receivers, set};
use serde_json::json;
use testkit::{Answer, instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_seller-api-blackbox");

/// The setting under which repeated sign-ins to one account are not delayed.
const UNDELAYED: (&str, &str) = ("PANEL__SIGN_IN_LONGEST_DELAY", "0s");

/// A world with the contract's limits.
async fn world() -> World {
    World::start(PROGRAM).await
}

/// A world with these settings, named without `SELLER_API__`.
async fn world_with(settings: &[(&str, &str)]) -> World {
    World::with(PROGRAM, |options| set(options, settings)).await
}

/// The same for deliveries to receivers of the test.
async fn world_of_hooks(settings: &[(&str, &str)]) -> World {
    World::with(PROGRAM, |options| set(local_receivers(options), settings)).await
}

/// A world with high limits for consents and token requests.
async fn world_of_consent() -> World {
    world_with(&[
        ("OAUTH__TOKEN_LIMIT_PER_IP", "100000"),
        ("OAUTH__TOKEN_LIMIT_PER_CLIENT", "100000"),
        ("OAUTH__AUTHORIZE_LIMIT_PER_IP", "100000"),
    ])
    .await
}

/// The same with a seller who can sign in, and another owner's application with these scopes.
async fn with_partner(scopes: &[&str]) -> (World, Member, Application) {
    let world = world_of_consent().await;
    let member = world.member().await;
    let app = world.partner(&world.seller().await, scopes).await;
    (world, member, app)
}

/// A world without a rate limit.
async fn unlimited() -> World {
    world_with(&[("RATE_LIMIT__DEFAULT", "1000000")]).await
}

/// A world with a trader and one offer.
async fn world_of_trade() -> (World, Trader, String) {
    let world = world().await;
    let trader = world.trader().await;
    let offer = world.any_offer(&trader.seller, json!({})).await;
    (world, trader, offer)
}

/// Asserts the headers that guard every page of the panel and the documentation; returns the content security
/// policy.
#[track_caller]
fn is_guarded<'a>(path: &str, answer: &'a Answer) -> &'a str {
    let policy = answer.must("content-security-policy");
    for directive in "default-src 'none';frame-ancestors 'none';base-uri 'none';form-action 'self'".split(';')
    {
        assert!(policy.contains(directive), "{path}: {policy}");
    }
    for (name, value) in [
        ("x-frame-options", "DENY"),
        ("referrer-policy", "no-referrer"),
        ("x-content-type-options", "nosniff"),
    ] {
        assert_eq!(answer.must(name), value, "{path}");
    }
    answer.must("x-trace-id");
    policy
}

/// Asserts that two tokens of one application and seller tell nothing and have nothing in common: after the
/// prefix they are base64url of random bytes, no text and no JWT.
#[track_caller]
fn is_opaque(one: &str, other: &str) {
    let [one, other] = [one, other].map(|token| {
        let (prefix, random) = token.split_at("ps_at_".len());
        assert!(matches!(prefix, "ps_at_" | "ps_rt_"), "{token}");
        let bytes = URL_SAFE_NO_PAD.decode(random).unwrap();
        assert!(bytes.len() >= 32 && str::from_utf8(&bytes).is_err(), "{token}");
        bytes
    });
    // A UUID of the seventh version begins with the time. Random bytes are the same at few places.
    let same = one.iter().zip(&other).skip(7).filter(|(one, other)| one == other);
    assert!(same.count() < 8, "{one:?} {other:?}");
}
