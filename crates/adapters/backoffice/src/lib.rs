//! The marketplace-side API on its own listener: sellers, their offers, applications and personal tokens, the bulk feed,
//! orders, the feed of changes, and what operations need to watch a process.
//!
//! `routes.rs` has one line for each call, `policy.rs` who may make it. The import's core, [`Importer`], needs no HTTP and
//! serves the command line too.

mod applications;
mod changes;
mod health;
mod import;
mod importer;
mod offers;
mod orders;
mod personal_tokens;
mod policy;
mod routes;
mod ruled;
mod sellers;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use ::changes::ChangeReader;
use ::offers::OfferReader;
use ::orders::{CarrierLookup, OrderDirectory};
use accounts::{OperatorTokens, PanelReader, PasswordHasher, SellerReader};
use actix_web::web::ServiceConfig;
use async_trait::async_trait;
use kernel::{IdempotencyClaims, Randomness};
use oauth::ApplicationReader;
use thiserror::Error;
use usecases::UnitOfWork;
use web::client_ip::TrustedProxies;
use web::front::Front;
use web::listener::Listener;
use web::route::Route;
use web::{Tasks, pipeline};

pub use importer::{ImportError, ImportReport, Importer, RejectedLine};
pub use policy::Access;
pub use routes::calls;

/// The ports and settings of one server thread. Clones share them.
#[derive(Clone)]
pub struct BackOffice {
    /// Everything that is written.
    pub units: Arc<dyn UnitOfWork>,
    /// Accounts.
    pub sellers: Arc<dyn SellerReader>,
    /// Offers; best one for each server thread.
    pub offers: Arc<dyn OfferReader>,
    /// Orders, every seller's part.
    pub orders: Arc<dyn OrderDirectory>,
    /// What sellers changed.
    pub changes: Arc<dyn ChangeReader>,
    /// Applications.
    pub applications: Arc<dyn ApplicationReader>,
    /// Who has set a password.
    pub panel: Arc<dyn PanelReader>,
    /// Who may call. Without it nobody is asked for a token, and only open calls are let in.
    pub operators: Option<Arc<dyn OperatorTokens>>,
    /// Who has which idempotency key.
    pub claims: Arc<dyn IdempotencyClaims>,
    /// Asks carriers about parcels.
    pub carriers: Arc<dyn CarrierLookup>,
    /// Hashes the passwords of new accounts.
    pub passwords: Arc<dyn PasswordHasher>,
    /// New ids and secrets.
    pub randomness: Arc<dyn Randomness>,
    /// Where writing work runs.
    pub tasks: Tasks,
    /// What `/readyz` asks.
    pub health: Arc<dyn Health>,
    /// What `/metrics` shows, in the Prometheus text format.
    pub metrics: Arc<dyn Fn() -> String + Send + Sync>,
    /// The rest.
    pub settings: Arc<BackOfficeSettings>,
}

/// Settings of the listener.
#[derive(Debug, Clone)]
pub struct BackOfficeSettings {
    /// Names the service in `WWW-Authenticate`.
    pub realm: String,
    /// Where sellers find the panel, without a trailing slash.
    pub public_url: String,
    /// Who is believed about the addresses of clients, for the audit log.
    pub trusted_proxies: TrustedProxies,
    /// The limit of an application that has none of its own, in requests a minute.
    pub default_rate_limit: NonZeroU32,
    /// How long a body may take to arrive; in an import, how long the next piece of it may.
    pub body_timeout: Duration,
    /// How long a request holds its idempotency key without completing: longer than any request can take (D49).
    pub idempotency_lease: Duration,
}

/// Whether this process can do its work.
#[async_trait]
pub trait Health: Send + Sync {
    /// Asked at each `/readyz`, and given up after 1.2 s, which counts as not ready.
    async fn ready(&self) -> Result<(), NotReady>;
}

/// Why this process cannot do its work, in words for an operator, without secrets.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct NotReady(pub String);

/// Puts the whole API into an actix application, to be called once for each server thread.
///
/// Routing is the pipeline's own, so that the token is looked at before anybody learns which paths there are.
pub fn configure(office: BackOffice) -> impl FnOnce(&mut ServiceConfig) {
    serve(office, BackOffice::NAME, routes::TABLE)
}

/// The same for a process that only works: `/healthz`, `/readyz` and `/metrics` alone.
pub fn configure_probes(office: BackOffice) -> impl FnOnce(&mut ServiceConfig) {
    let office = BackOffice {
        operators: None,
        ..office
    };
    serve(office, "probes", routes::PROBES)
}

fn serve(
    office: BackOffice,
    name: &'static str,
    table: &'static [Route<BackOffice>],
) -> impl FnOnce(&mut ServiceConfig) {
    move |config| {
        let proxies = office.settings.trusted_proxies.clone();
        let front = Front::internal(name, proxies, office.randomness.as_ref());
        let office = Arc::new(office);
        config.default_service(front.route(move |request| {
            let office = Arc::clone(&office);
            async move { pipeline::answer(&office, table, request).await }
        }));
    }
}
