//! The marketplace's API on its own listener: sellers, their offers, applications and personal tokens, the
//! bulk import, orders, the change feed, and monitoring of the process.
//!
//! `routes.rs` has one line for each operation; `policy.rs` defines who may call it. [`Importer`] works
//! without HTTP and also serves the command line.

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
mod sellers;

use std::sync::Arc;

use ::changes::ChangeReader;
use ::offers::OfferReader;
use ::orders::{CarrierLookup, OrderDirectory, PollSchedule};
use accounts::{AccountReader, OperatorReader, PasswordHasher};
use actix_web::web::ServiceConfig;
use chrono::TimeDelta;
use futures_util::future::BoxFuture;
use kernel::Sealer;
use oauth::ApplicationDirectory;
use web::front::Front;
use web::listener::{Listener, Ports};
use web::pipeline;

pub use import::Imports;
pub use importer::{ImportReport, Importer, RejectedLine};
pub use policy::Access;
pub use routes::calls;

use routes::Table;

/// The ports and settings of one server thread. Clones share them.
#[derive(Clone)]
pub struct BackOffice {
    pub ports: Ports,
    pub sellers: Arc<dyn AccountReader>,
    /// Reads offers; preferably one per server thread.
    pub offers: Arc<dyn OfferReader>,
    pub imports: Imports,
    /// Reads orders with every seller's part.
    pub orders: Arc<dyn OrderDirectory>,
    pub changes: Arc<dyn ChangeReader>,
    pub applications: Arc<dyn ApplicationDirectory>,
    /// Verifies operator tokens. If absent, no token is checked and only open operations are accepted.
    pub operators: Option<Arc<dyn OperatorReader>>,
    /// Looks up parcels at carriers.
    pub carriers: Arc<dyn CarrierLookup>,
    /// Hashes the passwords of new accounts.
    pub passwords: Arc<dyn PasswordHasher>,
    /// Makes the secret of registrations' fingerprints.
    pub sealer: Arc<dyn Sealer>,
    /// The check behind `/readyz`, which ends within 2 s: the database's identity, or, for an operator and
    /// without secrets, why this process cannot do its work.
    pub ready: Arc<dyn Fn() -> BoxFuture<'static, Result<String, String>> + Send + Sync>,
    /// Renders `/metrics` in the Prometheus text format.
    pub metrics: Arc<dyn Fn() -> String + Send + Sync>,
    pub settings: OfficeSettings,
}

/// The configuration of the listener.
#[derive(Clone, Copy)]
pub struct OfficeSettings {
    /// How many applications a seller may have.
    pub applications_per_seller: u32,
    /// The time within which an account gets no second mail with a link.
    pub link_interval: TimeDelta,
    /// When parcels are looked up after their shipment.
    pub tracking: PollSchedule,
}

/// Adds the whole API to an actix application; call it once per server thread.
///
/// The pipeline does the routing, so that a caller without a valid token cannot find out which paths exist.
pub fn configure(office: BackOffice) -> impl FnOnce(&mut ServiceConfig) {
    serve(office, BackOffice::NAME, routes::TABLE)
}

/// The same for a process that runs only workers: just `/healthz`, `/readyz` and `/metrics`.
pub fn configure_probes(mut office: BackOffice) -> impl FnOnce(&mut ServiceConfig) {
    office.operators = None;
    serve(office, "probes", routes::PROBES)
}

fn serve(office: BackOffice, name: &'static str, table: Table) -> impl FnOnce(&mut ServiceConfig) {
    move |config| {
        let front = Front::internal(name, &office.ports.service);
        let office = Arc::new(office);
        config.default_service(front.route(move |request| {
            let office = Arc::clone(&office);
            async move { pipeline::answer(&office, table, request).await }
        }));
    }
}
