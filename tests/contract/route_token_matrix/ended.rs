//! Credentials that were good once: expired, revoked, or taken their force by what became of their owner.

use blackbox::{Seller, World};
use chrono::TimeDelta;
use reqwest::Method;

use super::credentials::session;
use super::shown::Shown;

/// Longer than an access token lives.
pub(super) const LATER: TimeDelta = TimeDelta::hours(13);

/// Credentials that work now and will have come to their end by [`LATER`].
pub(super) async fn ageing(world: &World) -> Vec<(&'static str, Shown)> {
    let member = &mut world.member().await;
    let own = world.application(&member.seller, &["offers:read"]).await;
    let partner = world.partner(&member.seller, &["offers:read"]).await;
    let pair = world.pair(&mut member.browser, &partner, "offers:read").await;
    vec![
        (
            "an expired client's token",
            Shown::Bearer(world.token(&own).await),
        ),
        ("an expired consented token", Shown::Bearer(pair.access)),
        ("an expired session", Shown::Bearer(session(member))),
    ]
}

/// Tokens that were taken their force, one way each.
pub(super) async fn ended(world: &World) -> Vec<(&'static str, Shown)> {
    let seller = world.seller().await;
    let token_of = async |seller: &Seller| {
        let app = world.application(seller, &["offers:read"]).await;
        let token = world.token(&app).await;
        (app, token)
    };
    let (app, revoked) = token_of(&seller).await;
    world.revoke(&app, &revoked).await.expect(200);
    let (app, suspended) = token_of(&seller).await;
    world
        .move_application(&app.client_id, "suspension")
        .await
        .expect(200);
    let (app, deleted) = token_of(&seller).await;
    let gone = format!("/applications/{}", app.client_id);
    world.office(Method::DELETE, &gone).send().await.expect(204);
    let personal = world.personal_token(&seller, &["offers:read"]).await;
    let gone = format!("/sellers/{}/personal-tokens/{}", seller.id, personal.id);
    world.office(Method::DELETE, &gone).send().await.expect(204);
    let closing = world.seller().await;
    let (_, of_closed) = token_of(&closing).await;
    let personal_of_closed = world.personal_token(&closing, &["offers:read"]).await.token;
    let closure = format!("/sellers/{}/closure", closing.id);
    world.office(Method::POST, &closure).send().await.expect(200);
    let member = &mut world.member().await;
    let partner = world.partner(&seller, &["offers:read"]).await;
    let disconnected = world.pair(&mut member.browser, &partner, "offers:read").await;
    world.revoke(&partner, &disconnected.refresh).await.expect(200);
    vec![
        ("a revoked token", Shown::Bearer(revoked)),
        ("a suspended application's token", Shown::Bearer(suspended)),
        ("a deleted application's token", Shown::Bearer(deleted)),
        ("a revoked personal token", Shown::Bearer(personal.token)),
        ("a closed seller's token", Shown::Bearer(of_closed)),
        (
            "a closed seller's personal token",
            Shown::Bearer(personal_of_closed),
        ),
        (
            "a token whose connection was ended",
            Shown::Bearer(disconnected.access),
        ),
    ]
}
