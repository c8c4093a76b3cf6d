//! Every route with every kind of credential. The routes come from the tables that route them, and what is expected from the
//! scope that a route declares, so that a new route is in here by itself.

mod api;
mod credentials;
mod ended;
mod office;
mod panel;
mod shown;

use blackbox::World;
use testkit::Answer;

use self::credentials::Credentials;
use crate::PROGRAM;

#[tokio::test]
async fn every_route_with_every_credential() {
    let world = matrix_world().await;
    let issued = Credentials::issue(&world).await;
    let mut faults = Vec::new();
    let mut cells = api::routes(&world, &issued, &mut faults).await;
    cells += office::calls(&world, &issued, &mut faults).await;
    cells += panel::pages(&world, &issued, &mut faults).await;
    cells += api::endpoints(&world, &issued, &mut faults).await;
    assert!(faults.is_empty(), "{} of {cells}: {faults:#?}", faults.len());
    assert!(cells > 3_000, "{cells}");
}

async fn matrix_world() -> World {
    World::with(PROGRAM, |options| {
        options
            .set("SELLER_API__RATE_LIMIT__DEFAULT", 1_000_000)
            .set("SELLER_API__OAUTH__TOKEN_LIMIT_PER_IP", 1_000_000)
            .set("SELLER_API__OAUTH__TOKEN_LIMIT_PER_CLIENT", 1_000_000)
            .set("SELLER_API__OAUTH__AUTHORIZE_LIMIT_PER_IP", 1_000_000)
            .set("SELLER_API__PANEL__SIGN_IN_LIMIT_PER_IP", 1_000_000)
    })
    .await
}

/// A path of a template: what stands in braces is of the right form, and nobody's.
fn path(template: &str) -> String {
    let mut path = String::new();
    for part in template.split('/').skip(1) {
        let filled = match part {
            "{client_id}" => "psa_01900000000070008000000000000001",
            part if part.starts_with('{') => "01900000-0000-7000-8000-000000000001",
            part => part,
        };
        path = format!("{path}/{filled}");
    }
    path
}

/// What a cell of the matrix has come to, in a word.
fn verdict(answer: &Answer) -> &'static str {
    let refused = answer.status >= 400 && !answer.bytes.is_empty();
    let is_json = answer.header("content-type") == Some("application/json");
    let code = (refused && is_json)
        .then(|| answer.errors())
        .and_then(|entries| entries.first().map(|(code, _)| code.clone()));
    let challenge = answer.header("www-authenticate").unwrap_or_default();
    match (answer.status, code.as_deref()) {
        (401, Some("unauthorized")) if challenge.contains("error=\"invalid_token\"") => "unauthorized",
        (403, Some("insufficient_scope")) if challenge.contains("error=\"insufficient_scope\"") => {
            "insufficient scope"
        }
        (401 | 403 | 500.., _) => "something else",
        _ => "in",
    }
}
