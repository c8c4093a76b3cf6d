//! `POST /oauth/token`: the order of the checks of an exchange, and which calls of a public client count
//! against it.

use blackbox::{Application, Asking, Expect, World, encoded, text};

use crate::{token_endpoint::form, world_with};

/// A world with a stopped clock and these limits per address and per client.
async fn limited(per_address: &str, per_client: &str) -> World {
    let world = world_with(&[
        ("OAUTH__TOKEN_LIMIT_PER_IP", per_address),
        ("OAUTH__TOKEN_LIMIT_PER_CLIENT", per_client),
    ])
    .await;
    world.stop_clock("2040-01-01T12:00:30Z").await;
    world
}

/// The form of an exchange with some values replaced.
fn exchange(asking: &Asking, code: &str, app: &Application, changes: &[(&str, &str)]) -> String {
    let mut fields = asking.exchanging(code).to_vec();
    fields.extend([
        ("client_id", &*app.client_id),
        ("client_secret", &app.client_secret),
    ]);
    for field in &mut fields {
        let new = changes.iter().find(|(name, _)| *name == field.0);
        field.1 = new.map_or(field.1, |(_, value)| value);
    }
    encoded(&fields)
}

#[tokio::test]
async fn the_earliest_fault_of_an_exchange_is_answered() {
    let world = limited("6", "2").await;
    let app = world.partner(&world.seller().await, &["offers:read"]).await;
    let asking = world.asking(&app, "offers:read");
    let code = world.code(&mut world.member().await.browser, &asking).await;
    // From the last check to the first: each fault hides those of later checks.
    let mut changes = vec![("redirect_uri", "https://app.example/")];
    for (next, status, error) in [
        (None, 400, "invalid_grant"),
        (Some(("code_verifier", "short")), 400, "invalid_request"),
        (None, 429, "rate_limited"),
        (Some(("client_secret", "pss_x")), 401, "invalid_client"),
        (Some(("grant_type", "password")), 400, "unsupported_grant_type"),
    ] {
        changes.extend(next);
        let answer = form(&world, &exchange(&asking, &code, &app, &changes)).await;
        answer.oauth_error(status, error);
    }
    let twice = exchange(&asking, &code, &app, &changes) + "&x=1&x=2";
    form(&world, &twice).await.oauth_error(400, "invalid_request");
    form(&world, &twice).await.oauth_error(429, "rate_limited");
}

#[tokio::test]
async fn the_application_of_personal_tokens_is_no_client() {
    let world = world_with(&[]).await;
    let (_, token) = world.reader().await;
    let me = world.read(&token, "/v1/me").await;
    let client = text(&me["app"], "client_id");
    for path in ["/oauth/token", "/oauth/revoke"] {
        let fields = format!("client_id={client}&token={token}&grant_type=authorization_code&code=x");
        let answer = world.at("POST", path).form(&fields).send().await;
        answer.oauth_error(401, "invalid_client");
    }
    world.get(&token, "/v1/me").await.expect(200);
}

/// A public client has no secret, so anybody could use up the limit of one that counts by its id alone.
#[tokio::test]
async fn a_call_counts_against_a_public_client_only_with_a_live_credential_of_its_own() {
    let world = limited("1000", "2").await;
    let owner = world.seller().await;
    let app = world.public_partner(&owner, &["offers:read"]).await;
    let other = world.public_partner(&owner, &["offers:read"]).await;
    let asking = world.asking(&app, "offers:read");
    let mut browser = world.member().await.browser;
    let [code, used] = [
        world.code(&mut browser, &asking).await,
        world.code(&mut browser, &asking).await,
    ];
    form(&world, &exchange(&asking, &used, &app, &[]))
        .await
        .expect(200);
    let by = |client, changes: &[_]| exchange(&asking, &code, client, changes);
    let uncounted = [
        // A used code may have leaked.
        (
            by(&app, &[("code", &used), ("code_verifier", "short")]),
            400,
            "invalid_request",
        ),
        (by(&other, &[]), 400, "invalid_grant"),
        (by(&app, &[("code", "")]), 400, "invalid_request"),
        (by(&app, &[("code", "ps_ac_x")]), 400, "invalid_grant"),
        (
            by(&app, &[("grant_type", "client_credentials")]),
            401,
            "invalid_client",
        ),
    ];
    let short = by(&app, &[("code_verifier", "short")]);
    let counted = [
        (short.clone(), 400, "invalid_request"),
        (short, 429, "rate_limited"),
    ];
    for (body, status, error) in [&uncounted, counted.as_slice(), &uncounted].concat() {
        form(&world, &body).await.oauth_error(status, error);
    }
}
