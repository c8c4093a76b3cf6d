//! The authorization server: `/oauth` and the metadata document.

mod authorize;
mod client;
mod error;
mod issuing;
mod limits;
mod revoke;
mod token;

use std::sync::Arc;

use actix_web::http::header::{AUTHORIZATION, HeaderValue, PRAGMA, REFERRER_POLICY};
use actix_web::http::{Method, StatusCode};
use actix_web::{HttpMessage, HttpResponse};
use kernel::StoreError;
use oauth::{Holder, TokenKey};
use tokio::sync::OnceCell;
use web::request::{Answer, Request};
use web::tasks::catch_panic;
use web::{head, response};

use crate::Public;
use crate::openapi::{METADATA, fixed_part};
use error::{Code, OAuthError};

#[cfg(test)]
pub(crate) use token::GrantType;

/// The path of the metadata document (RFC 8414 §3).
pub(crate) const METADATA_PATH: &str = "/.well-known/oauth-authorization-server";

kernel::words! {
    /// The endpoints under `/oauth`, by their paths.
    enum Endpoint {
        Authorize = "/oauth/authorize",
        Token = "/oauth/token",
        Revoke = "/oauth/revoke",
    }
}

impl Endpoint {
    /// The method of the endpoint in the contract.
    const fn method(self) -> &'static str {
        match self {
            Self::Authorize => "GET",
            Self::Token | Self::Revoke => "POST",
        }
    }

    /// Whether the endpoint accepts this method: HEAD counts as GET (D5).
    fn takes(self, method: &Method) -> bool {
        method == self.method() || (*method == Method::HEAD && self.method() == "GET")
    }
}

/// Method and path of every endpoint, for tests.
pub fn endpoints() -> impl Iterator<Item = (&'static str, &'static str)> {
    Endpoint::ALL
        .into_iter()
        .map(|endpoint| (endpoint.method(), endpoint.as_str()))
}

/// The code or token that a call presents, and its holder.
struct PresentedKey {
    token: TokenKey,
    /// Looked up at most once.
    holder: OnceCell<Option<Holder>>,
}

impl PresentedKey {
    fn new(token: TokenKey) -> Arc<Self> {
        let holder = OnceCell::new();
        Arc::new(Self { token, holder })
    }

    async fn holder(&self, public: &Public) -> Result<Option<Holder>, StoreError> {
        let look_up = || public.grants.holder(self.token);
        self.holder.get_or_try_init(look_up).await.copied()
    }
}

/// Answers a request for the metadata document.
pub(crate) fn metadata(public: &Public, request: Request) -> Answer {
    request.answer_document(METADATA_PATH, |trace_id| {
        let service = &public.ports.service;
        let document = fixed_part(METADATA, &service.public_url, &service.docs_url);
        response::json(StatusCode::OK, document.to_string(), trace_id)
    })
}

pub(crate) async fn answer(public: &Arc<Public>, mut request: Request) -> Answer {
    let endpoint = Endpoint::parse(request.path());
    let route = endpoint.map_or("-", Endpoint::as_str);
    let trace_id = request.trace_id;
    let (mut response, closes) = match catch_panic(dispatch(public, &mut request, endpoint)).await {
        Ok(response) => (response, false),
        Err(mut error) => {
            if error.code() != Code::SERVER_ERROR && record_holder(public, &request).await {
                error.log_another_client();
            }
            // RFC 6749 §5.2.
            let challenges = request.headers().contains_key(AUTHORIZATION);
            let realm = challenges.then_some(public.ports.service.realm.as_str());
            error.logged(&trace_id, route).into_response(&trace_id, realm)
        }
    };
    let headers = response.headers_mut();
    // RFC 6749 §5.1 requires it beside `Cache-Control`.
    headers.insert(PRAGMA, HeaderValue::from_static("no-cache"));
    if endpoint == Some(Endpoint::Authorize) {
        // Keeps the query, which describes a client and its seller, from the next page (RFC 9700 §4.2.4).
        headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    }
    request.end(response, route, closes)
}

/// Names the token of a call, and its seller, in the access log. Returns whether it is another client's.
async fn record_holder(public: &Public, request: &Request) -> bool {
    let Some(key) = request.http.extensions().get::<Arc<PresentedKey>>().cloned() else {
        return false;
    };
    let Ok(Ok(Some(holder))) = request.deadline().run(key.holder(public)).await else {
        return false;
    };
    let mut is_anothers = false;
    request.record_caller(|caller| {
        caller.seller = Some(holder.seller);
        caller.token = Some(key.token.family);
        is_anothers = caller.client_id != Some(holder.client_id);
    });
    is_anothers
}

/// Any path under `/oauth` that is not an endpoint gets the same 404 (D87).
async fn dispatch(
    public: &Arc<Public>,
    request: &mut Request,
    endpoint: Option<Endpoint>,
) -> Result<HttpResponse, OAuthError> {
    head::check(request.http.head()).map_err(OAuthError::closing)?;
    match endpoint {
        Some(other) if !other.takes(request.method()) => Err(OAuthError::wrong_method(other.method())),
        Some(Endpoint::Authorize) => authorize::answer(public, request).await,
        Some(Endpoint::Token) => token::issue(public, request).await,
        Some(Endpoint::Revoke) => revoke::revoke(public, request).await,
        None => {
            let shorter = request.path().strip_suffix('/');
            Err(OAuthError::not_found(match shorter.and_then(Endpoint::parse) {
                Some(_) => "Remove the trailing slash: the endpoint exists without it.",
                None => "Endpoint not found.",
            }))
        }
    }
}
