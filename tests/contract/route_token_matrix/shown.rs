//! The ways in which a credential can be shown, good ones and others.

use blackbox::World;
use reqwest::Method;
use serde_json::json;
use testkit::Request;

/// A way to show a credential.
#[derive(Debug, Clone)]
pub(super) enum Shown {
    Nothing,
    /// The whole header `Authorization`.
    Header(String),
    Bearer(String),
    TwoHeaders(String),
    Query(String),
    FormBody(String),
    JsonBody(String),
    Cookie(String),
    OtherHeader(&'static str, String),
}

impl Shown {
    /// The request for a path with the credential in its place.
    pub(super) fn at(&self, world: &World, method: &str, url: &str) -> Request {
        let method: Method = method.parse().unwrap();
        let asking = |url: &str| world.client.request(method.clone(), url);
        match self {
            Self::Nothing => asking(url),
            Self::Header(value) => asking(url).header("authorization", value),
            Self::Bearer(token) => asking(url).bearer(token),
            Self::TwoHeaders(token) => asking(url).bearer(token).bearer(token),
            Self::Query(token) => asking(&format!("{url}?access_token={token}&token={token}")),
            Self::FormBody(token) => asking(url).form(&format!("access_token={token}&token={token}")),
            Self::JsonBody(token) => asking(url).json(&json!({"access_token": token})),
            Self::Cookie(token) => asking(url).header(
                "cookie",
                &format!("seller_panel={token}; access_token={token}; authorization=Bearer {token}"),
            ),
            Self::OtherHeader(name, token) => asking(url).header(name, token),
        }
    }
}

/// The ways of a good token that are no ways.
pub(super) fn misplaced(token: &str) -> Vec<(&'static str, Shown)> {
    let own = |text: &str| text.to_owned();
    let mut ways: Vec<_> = ["Basic", "Token", "DPoP", "MAC", "Bearer:", "BearerX"]
        .map(|scheme| ("another scheme", Shown::Header(format!("{scheme} {token}"))))
        .into();
    ways.extend([
        ("no scheme", Shown::Header(own(token))),
        ("two headers", Shown::TwoHeaders(own(token))),
        ("two tokens", Shown::Header(format!("Bearer {token} {token}"))),
        ("a comma", Shown::Header(format!("Bearer {token},Bearer {token}"))),
        ("the query", Shown::Query(own(token))),
        ("a form", Shown::FormBody(own(token))),
        ("a JSON body", Shown::JsonBody(own(token))),
        ("a cookie", Shown::Cookie(own(token))),
        ("another header", Shown::OtherHeader("x-api-key", own(token))),
        (
            "the proxy's header",
            Shown::OtherHeader("proxy-authorization", format!("Bearer {token}")),
        ),
        (
            "the original header",
            Shown::OtherHeader("x-original-authorization", format!("Bearer {token}")),
        ),
    ]);
    ways
}
