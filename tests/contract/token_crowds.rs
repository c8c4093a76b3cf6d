//! Concurrent `POST /oauth/token` requests: batched answers are the same as single ones.

use blackbox::{Application, Expect, World, at_once, text};
use serde_json::json;
use testkit::{Answer, Request, TestServer};

use crate::{token_endpoint::proper, world_of_consent};

/// The requests with these forms, alternating between two processes.
pub(crate) fn forms(
    world: &World,
    second: &TestServer,
    forms: impl IntoIterator<Item = String>,
) -> Vec<Request> {
    let bases = [&world.server.base_url, &second.base_url].into_iter().cycle();
    let asked = forms.into_iter().zip(bases).map(|(form, base)| {
        let url = format!("{base}/oauth/token");
        world.client.post(&url).form(&form)
    });
    asked.collect()
}

/// Asserts that the token belongs to the application.
async fn is_of(world: &World, answer: Answer, app: &Application) {
    let token = text(&answer.expect(200).json(), "access_token");
    let me = world.read(&token, "/v1/me").await;
    assert_eq!(me["app"]["client_id"], json!(app.client_id));
}

async fn application(world: &World) -> Application {
    world.application(&world.seller().await, &["offers:read"]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_clients_get_their_own_answers() {
    let world = world_of_consent().await;
    let second = world.another().await;
    let mut known = Vec::new();
    for _ in 0..5 {
        known.push(application(&world).await);
    }
    let (gone, suspended) = (application(&world).await, application(&world).await);
    world.delete_application(&gone).await;
    world.moved(&suspended, "suspension").await;
    let nobody =
        "grant_type=client_credentials&client_id=psa_00000000000070008000000000000000&client_secret=x";
    let asked = (0..40).map(|n| match n % 8 {
        5 => nobody.to_owned(),
        6 => proper(&gone),
        7 => proper(&suspended),
        n => proper(&known[n]),
    });
    let answers = at_once(forms(&world, &second, asked)).await;
    for (n, answer) in answers.into_iter().enumerate() {
        match n % 8 {
            n @ 0..5 => is_of(&world, answer, &known[n]).await,
            _ => answer.oauth_error(401, "invalid_client"),
        }
    }
}
