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
    let mut example = shop.example(language, &[]).await;
    journey::earlier_orders(&shop, &example).await;
    journey::an_order_of_several_sellers(&shop, &example).await;
    journey::a_webhook_delivery(&shop, &example).await;
    journey::too_many_requests(&shop, &example).await;
    journey::a_failure(&shop, &example).await;
    journey::a_lost_answer(&shop, &example).await;
    journey::a_revoked_token(&shop, &example, "client_credentials").await;
    journey::a_missing_scope(&shop, &mut example).await;
    journey::a_cancelled_order(&shop, &example).await;
    journey::a_crash(&shop, &mut example).await;
    journey::a_lost_secret(&shop, &mut example).await;
    journey::changes_of_offers(&shop, &mut example).await;
    journey::missed_events(&shop, &mut example).await;
    journey::a_gap(&shop, &mut example).await;
}

/// The example works for other sellers who have consented, and always uses the latest refresh token of each.
async fn for_other_sellers(language: Language) {
    if !language.is_here() {
        return;
    }
    let shop = Shop::open().await;
    let refresh_token = consent::refresh_token(&shop, 0).await;
    let mut example = shop.example(language, &[&refresh_token]).await;
    journey::earlier_orders(&shop, &example).await;
    journey::a_revoked_token(&shop, &example, "refresh_token").await;
    example.crash();
    shop.start_again(&mut example).await;
    journey::a_revoked_token(&shop, &example, "refresh_token").await;
    consent::each_was_used_once(&shop, &refresh_token);
    journey::a_database_set_back(&shop, &example).await;
    journey::a_lost_refresh(&shop, &example).await;
    journey::a_crash_in_a_refresh(&shop, &mut example).await;
    let consented_again = consent::refresh_token(&shop, 0).await;
    example.crash();
    shop.consented(&[&consented_again]);
    shop.start_again(&mut example).await;
    consent::was_used_last(&shop, &consented_again);
    let another = consent::refresh_token(&shop, 1).await;
    example.crash();
    shop.consented(&[&consented_again, &another]);
    shop.start_again(&mut example).await;
    consent::was_used_last(&shop, &another);
    journey::two_sellers(&shop, &example).await;
    journey::an_unreadable_store(&shop, &mut example).await;
}

#[tokio::test]
async fn python_works_for_its_owner() {
    for_its_owner(Language::Python).await;
}

#[tokio::test]
async fn python_works_for_other_sellers() {
    for_other_sellers(Language::Python).await;
}

#[tokio::test]
async fn typescript_works_for_its_owner() {
    for_its_owner(Language::TypeScript).await;
}

#[tokio::test]
async fn typescript_works_for_other_sellers() {
    for_other_sellers(Language::TypeScript).await;
}
