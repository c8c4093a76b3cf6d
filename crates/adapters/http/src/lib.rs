//! The public listener: `/v1`, `/oauth`, the metadata that clients discover them by, and the OpenAPI document.
//!
//! Every request comes in through one service ([`configure`]) and is answered by one of three parts: the pipeline of `/v1`
//! with `policy.rs`, the authorization server under `/oauth`, the two documents; or by a plain 404.

mod authorization_server;
mod me;
mod offers;
mod openapi;
mod orders;
mod page;
mod policy;
mod routes;
mod shipments;
mod usage;
mod view;
mod webhooks;

#[cfg(test)]
mod tests;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use ::offers::OfferReader;
use ::orders::{CarrierLookup, OrderReader};
use ::webhooks::{AddressPolicy, HostCheck, SubscriptionReader};
use actix_web::web::ServiceConfig;
use bytes::Bytes;
use chrono::TimeDelta;
use ipnet::IpNet;
use kernel::{Clock, IdempotencyClaims, Randomness, Sealer};
use oauth::{ApplicationReader, ClientTokens, Gate, GrantReader, RateCounter};
use usecases::UnitOfWork;
use web::front::Front;
use web::listener::Listener;
use web::request::{Answer, Request};
use web::route::is_under;
use web::{Tasks, TrustedProxies, pipeline};

pub use authorization_server::endpoints;
pub use openapi::openapi;
pub use routes::TABLE;
pub use usage::UsageMeter;

/// What the listener works with. Each server thread has its own.
pub struct Public {
    /// Opens the transactions of what writes.
    pub units: Arc<dyn UnitOfWork>,
    /// Looks up tokens and counts requests; one for each server thread.
    pub gate: Arc<dyn Gate>,
    /// Reads offers; one for each server thread.
    pub offers: Arc<dyn OfferReader>,
    /// Reads orders.
    pub orders: Arc<dyn OrderReader>,
    /// Asks carriers about parcels, within the deadline of a seller's request.
    pub carriers: Arc<dyn CarrierLookup>,
    /// Reads subscriptions to webhooks.
    pub subscriptions: Arc<dyn SubscriptionReader>,
    /// Looks at the hosts of new subscriptions.
    pub hosts: Arc<dyn HostCheck>,
    /// Claims idempotency keys.
    pub claims: Arc<dyn IdempotencyClaims>,
    /// Finds the applications that authenticate at the token endpoint; one for each server thread.
    pub applications: Arc<dyn ApplicationReader>,
    /// Issues the tokens of applications; one for each server thread.
    pub client_tokens: Arc<dyn ClientTokens>,
    /// Tells whose codes and refresh tokens are.
    pub grants: Arc<dyn GrantReader>,
    /// Counts calls of the OAuth endpoints; one for each server thread.
    pub rates: Arc<dyn RateCounter>,
    /// Adds up who calls `/v1`; all server threads share it.
    pub usage: UsageMeter,
    /// Seals the cursors of lists and requests for consent.
    pub sealer: Arc<dyn Sealer>,
    /// Makes ids and secrets.
    pub randomness: Arc<dyn Randomness>,
    /// Carries what writes past the end of its request.
    pub tasks: Tasks,
    /// What the operator has chosen.
    pub settings: Arc<HttpSettings>,
}

/// What the operator chooses about the listener.
pub struct HttpSettings {
    /// The origin that clients use, and the OAuth issuer; without a trailing slash.
    pub public_url: String,
    /// Names the service in `WWW-Authenticate`.
    pub realm: String,
    /// Requests a minute of an application that has no limit of its own; told where nothing was counted.
    pub default_rate_limit: NonZeroU32,
    /// How long an access token is valid (contract: 12 hours).
    pub access_token_ttl: TimeDelta,
    /// How long a refresh token is valid (contract: 90 days).
    pub refresh_token_ttl: TimeDelta,
    /// Calls of `/oauth/token` and `/oauth/revoke` a minute from one address (contract: 30).
    pub token_limit_per_ip: u32,
    /// Authenticated calls of `/oauth/token` and `/oauth/revoke` a minute of one client (contract: 60).
    pub token_limit_per_client: u32,
    /// Calls of `/oauth/authorize` a minute from one address (60).
    pub authorize_limit_per_ip: u32,
    /// Where developers read about the service, told in the metadata.
    pub docs_url: String,
    /// The proxies whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<IpNet>,
    /// Where webhooks may go.
    pub addresses: AddressPolicy,
    /// How long a client may take to send a body.
    pub body_timeout: Duration,
    /// How long a claim on an idempotency key holds when nobody gives it back (contract's decision: 60 s). To be longer than
    /// any request with a key can take, which is about 30 s; where it is not, a request may find its claim lost, and then
    /// changes nothing.
    pub idempotency_lease: Duration,
    /// The time of this process: for the end of a window in which nothing was counted.
    pub clock: Arc<dyn Clock>,
}

/// Serves the whole listener; call it once for each server thread. Services that are registered beside it, such as the
/// panel's, come first: this one takes every request that nobody else does.
pub fn configure(state: Public) -> impl FnOnce(&mut ServiceConfig) {
    move |config| {
        let settings = &state.settings;
        let proxies = TrustedProxies::new(settings.trusted_proxies.iter().copied());
        let document = openapi::served(&settings.public_url, &settings.docs_url);
        let front = Front::public(Public::NAME, proxies, state.randomness.as_ref());
        let state = Arc::new(state);
        config.default_service(front.route(move |request| {
            let (state, document) = (Arc::clone(&state), document.clone());
            async move { answer(&state, &document, request).await }
        }));
    }
}

async fn answer(state: &Arc<Public>, document: &Bytes, request: Request) -> Answer {
    match request.path() {
        path if is_under(path, "/v1") => pipeline::answer(state, TABLE, request).await,
        path if is_under(path, "/oauth") => authorization_server::answer(state, request).await,
        authorization_server::METADATA_PATH => authorization_server::metadata(state, request),
        openapi::PATH => openapi::answer(document, request),
        _ => request.answer_not_found(),
    }
}
