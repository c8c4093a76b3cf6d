//! The public listener: `/v1`, `/oauth`, the authorization server metadata, and the OpenAPI document.
//!
//! Every request enters through one service ([`configure`]). The `/v1` pipeline with `policy.rs`, the
//! authorization server under `/oauth`, or one of the two documents answers it; any other path gets a plain
//! 404.

mod authorization_server;
mod deliveries;
mod documents;
mod events;
mod me;
mod offers;
mod openapi;
mod orders;
mod page;
mod policy;
mod routes;
mod shipments;
mod webhooks;

use std::sync::Arc;

use ::offers::{OfferChanges, OfferReader};
use ::orders::{CarrierLookup, OrderReader, PollSchedule};
use ::webhooks::{AddressPolicy, HostCheck, SubscriptionReader};
use actix_web::web::ServiceConfig;
use chrono::TimeDelta;
use kernel::{Clock, Sealer};
use oauth::{ApplicationReader, ClientId, Gate, GrantReader, RateCounter, TokenIssuer};
use usecases::Announcement;
use web::front::Front;
use web::listener::{Listener, Ports};
use web::openapi::ServedDocument;
use web::path::is_under;
use web::pipeline;
use web::places::Places;
use web::request::{Answer, Request};

pub use authorization_server::endpoints;
pub use events::Waiting;
pub use openapi::openapi;
pub use policy::UsageMeter;
pub use routes::TABLE;

/// The ports and settings of the listener. Each server thread has its own.
pub struct Public {
    pub ports: Ports,
    /// Looks up tokens and counts requests; one for each server thread.
    pub gate: Arc<dyn Gate>,
    /// Reads offers; one for each server thread.
    pub offers: Arc<dyn OfferReader>,
    /// Changes offers without a lock, if the database can; shared by all server threads.
    pub offer_changes: Option<Arc<dyn OfferChanges<Announcement>>>,
    pub orders: Arc<dyn OrderReader>,
    /// Looks up parcels at carriers, within the deadline of a seller's request.
    pub carriers: Arc<dyn CarrierLookup>,
    pub subscriptions: Arc<dyn SubscriptionReader>,
    /// Checks the hosts of new subscriptions.
    pub hosts: Arc<dyn HostCheck>,
    /// The hosts that are checked now, by application; shared by all server threads.
    pub host_checks: Places<ClientId>,
    /// Finds the applications that authenticate at the token endpoint; one for each server thread.
    pub applications: Arc<dyn ApplicationReader>,
    /// Issues tokens; one for each server thread.
    pub tokens: Arc<dyn TokenIssuer>,
    /// Finds the owners of codes and refresh tokens.
    pub grants: Arc<dyn GrantReader>,
    pub rates: Arc<dyn RateCounter>,
    /// Reads the journals; shared by all server threads.
    pub waiting: Waiting,
    /// Counts calls of `/v1` by caller; shared by all server threads.
    pub usage: UsageMeter,
    /// Seals list cursors and consent requests.
    pub sealer: Arc<dyn Sealer>,
    /// Returns the document of [`openapi()`].
    pub openapi: ServedDocument,
    pub settings: Arc<HttpSettings>,
}

/// The configuration of the listener.
pub struct HttpSettings {
    /// The lifetime of an access token (contract: 12 hours).
    pub access_token_ttl: TimeDelta,
    /// The lifetime of a refresh token (contract: 90 days).
    pub refresh_token_ttl: TimeDelta,
    /// Calls of `/oauth/token` and `/oauth/revoke` per minute from one address (contract: 30).
    pub token_limit_per_ip: u32,
    /// Authenticated calls of `/oauth/token` and `/oauth/revoke` per minute by one client (contract: 60).
    pub token_limit_per_client: u32,
    /// Calls of `/oauth/authorize` per minute from one address (60).
    pub authorize_limit_per_ip: u32,
    /// The addresses that webhooks may be sent to.
    pub addresses: AddressPolicy,
    /// When parcels are looked up after their shipment.
    pub tracking: PollSchedule,
    /// The process clock, for the end of the window in responses to requests that were not counted.
    pub clock: Arc<dyn Clock>,
}

/// Serves the whole listener; call it once per server thread. Register other services, such as the panel,
/// first: this one takes every remaining request.
pub fn configure(state: Public) -> impl FnOnce(&mut ServiceConfig) {
    move |config| {
        let front = Front::public(Public::NAME, &state.ports.service);
        let state = Arc::new(state);
        config.default_service(front.route(move |request| {
            let state = Arc::clone(&state);
            async move { answer(&state, request).await }
        }));
    }
}

async fn answer(state: &Arc<Public>, request: Request) -> Answer {
    match request.path() {
        path if is_under(path, "/v1") => pipeline::answer(state, TABLE, request).await,
        path if is_under(path, "/oauth") => authorization_server::answer(state, request).await,
        authorization_server::METADATA_PATH => authorization_server::metadata(state, request),
        openapi::PATH => openapi::answer(state, request),
        _ => request.answer_not_found(),
    }
}
