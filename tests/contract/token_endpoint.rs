//! Helpers for requests to the token endpoint.

use base64::{Engine, prelude::BASE64_STANDARD};
use blackbox::{Application, World};
use testkit::{Answer, Request};

/// A POST to the token endpoint, which requires no User-Agent.
pub(crate) fn asking(world: &World) -> Request {
    world.at("POST", "/oauth/token").without("user-agent")
}

/// Sends a form.
pub(crate) async fn form(world: &World, body: &str) -> Answer {
    asking(world).form(body).send().await
}

/// Sends a form with Basic credentials.
pub(crate) async fn form_with_basic(world: &World, credentials: &str, body: &str) -> Answer {
    let request = asking(world).header("authorization", &basic(credentials));
    request.form(body).send().await
}

/// The Authorization header for `id:secret`.
pub(crate) fn basic(credentials: &str) -> String {
    format!("Basic {}", BASE64_STANDARD.encode(credentials))
}

/// `id:secret` of an application.
pub(crate) fn credentials(app: &Application) -> String {
    format!("{}:{}", app.client_id, app.client_secret)
}

/// A valid form, to which a test may append.
pub(crate) fn proper(app: &Application) -> String {
    format!(
        "grant_type=client_credentials&client_id={}&client_secret={}",
        app.client_id, app.client_secret
    )
}
