//! The panel, the consent screen and the documentation in a real browser, with and without scripts.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod chromium;
mod consenting;
mod docs;
mod driver;
mod keyboard;
mod looks;
mod other_origin;
mod panel;
mod sandbox_page;

use blackbox::{PASSWORD, Seller, World};
use serde_json::json;

use crate::driver::Session;

const PROGRAM: &str = env!("CARGO_BIN_EXE_seller-api-blackbox");

/// A world with a seller who has not signed in yet.
async fn world_and_seller() -> (World, Seller) {
    let world = World::start(PROGRAM).await;
    let seller = world.registered(json!({"password": PASSWORD})).await;
    (world, seller)
}

/// Signs in on the current page.
async fn sign_in(browser: &Session, seller: &Seller) {
    browser.fill("input[name=email]", &seller.email).await;
    browser.fill("input[name=password]", PASSWORD).await;
    browser.follow("main form button").await;
}
