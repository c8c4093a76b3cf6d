//! The unmodified programs of `docs/examples` trade with a sandbox: every paid order gets shipped, whatever
//! goes wrong on the way.
//!
//! `.ci/run` or `tests/examples/install` installs their dependencies below the target folder. Without them
//! the tests report that and are skipped, unless `CI` is set.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod consent;
mod journey;
mod program;
mod shop;

use program::Language;
use shop::Shop;

const PROGRAM: &str = env!("CARGO_BIN_EXE_seller-api-blackbox");

/// The example works for its application's owner and meets every kind of failure.
async fn for_its_owner(language: Language) {
    if !language.is_here() {
        return;
    }
    let shop = Shop::open().await;
    let mut example = shop.example(language, None).await;
    journey::earlier_orders(&shop, &example).await;
    journey::a_webhook_delivery(&shop, &example).await;
    journey::too_many_requests(&shop, &example).await;
    journey::a_failure(&shop, &example).await;
    journey::a_lost_answer(&shop, &example).await;
    journey::a_revoked_token(&shop, &example, "client_credentials").await;
    journey::a_cancelled_order(&shop, &example).await;
    journey::a_crash(&shop, &mut example).await;
    journey::a_missed_event(&shop, &mut example).await;
}

/// The example works for another seller who has consented, and always uses its latest refresh token.
async fn for_another_seller(language: Language) {
    if !language.is_here() {
        return;
    }
    let shop = Shop::open().await;
    let refresh_token = consent::refresh_token(&shop).await;
    let mut example = shop.example(language, Some(&refresh_token)).await;
    journey::earlier_orders(&shop, &example).await;
    journey::a_revoked_token(&shop, &example, "refresh_token").await;
    example.crash();
    shop.start_again(&mut example).await;
    journey::a_revoked_token(&shop, &example, "refresh_token").await;
    consent::each_was_used_once(&shop, &refresh_token);
    journey::a_lost_refresh(&shop, &example).await;
    journey::a_crash_in_a_refresh(&shop, &mut example).await;
    let consented_again = consent::refresh_token(&shop).await;
    example.crash();
    example.set("REFRESH_TOKEN", &consented_again);
    shop.start_again(&mut example).await;
    consent::was_used_last(&shop, &consented_again);
}

#[tokio::test]
async fn python_works_for_its_owner() {
    for_its_owner(Language::Python).await;
}

#[tokio::test]
async fn python_works_for_another_seller() {
    for_another_seller(Language::Python).await;
}

#[tokio::test]
async fn typescript_works_for_its_owner() {
    for_its_owner(Language::TypeScript).await;
}

#[tokio::test]
async fn typescript_works_for_another_seller() {
    for_another_seller(Language::TypeScript).await;
}
