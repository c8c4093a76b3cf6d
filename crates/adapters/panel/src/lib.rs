//! The sellers' panel and the consent screen: plain pages and forms that work without JavaScript, under
//! `/panel` of the public listener.
//!
//! Every request enters through one service ([`configure`]). One table (`routes`) defines every page and who
//! may see it, and every form needs a CSRF token, so no page can skip a check.

mod browser;
mod fields;
mod frame;
mod issues;
mod next;
mod page_error;
mod page_request;
mod pages;
mod pipeline;
mod places;
mod routes;
mod texts;

pub use places::Places;
pub use routes::pages;

use std::sync::Arc;

use accounts::{AccountReader, PasswordHasher};
use actix_web::web::{ServiceConfig, scope};
use chrono::TimeDelta;
use kernel::Sealer;
use oauth::{ApplicationReader, GrantReader, RateCounter};
use offers::OfferReader;
use orders::OrderReader;
use usecases::own_applications::ApplicationLimits;
use usecases::sign_in::AttemptLimits;
use web::front::Front;
use web::listener::Ports;
use webhooks::SubscriptionReader;

/// The ports and settings of the panel.
#[derive(Clone)]
pub struct Panel {
    pub ports: Ports,
    /// Reads accounts, sessions, links, tokens and usage.
    pub accounts: Arc<dyn AccountReader>,
    /// Reads connections of sellers to applications.
    pub grants: Arc<dyn GrantReader>,
    pub offers: Arc<dyn OfferReader>,
    pub orders: Arc<dyn OrderReader>,
    /// Reads webhook subscriptions and deliveries.
    pub subscriptions: Arc<dyn SubscriptionReader>,
    pub applications: Arc<dyn ApplicationReader>,
    /// Counts sign-in attempts, and the pages of each account.
    pub rates: Arc<dyn RateCounter>,
    /// Hashes and compares passwords.
    pub passwords: Arc<dyn PasswordHasher>,
    /// Opens consent requests, and seals results that are shown once.
    pub sealer: Arc<dyn Sealer>,
    /// Shared by all server threads.
    pub places: Places,
    pub settings: Arc<PanelSettings>,
}

/// The configuration of the panel.
pub struct PanelSettings {
    /// The lifetime of an authorization code (contract: 10 minutes).
    pub code_ttl: TimeDelta,
    /// The limits of sign-in attempts.
    pub attempts: AttemptLimits,
    /// Pages and forms a minute of a signed-in account, all its sessions together.
    pub pages_per_minute: u32,
    /// The time within which an account gets no second mail with a link; zero for no limit.
    pub link_interval: TimeDelta,
    /// The limits of registrations.
    pub applications: ApplicationLimits,
    /// The address of the terms of the API.
    pub terms_url: Option<String>,
}

/// Serves `/panel` and everything below it; call it once per server thread, before the listener that takes
/// every remaining request.
pub fn configure(panel: Panel) -> impl FnOnce(&mut ServiceConfig) {
    move |config| {
        let front = Front::public("panel", &panel.ports.service);
        let panel = Arc::new(panel);
        let route = front.route(move |request| pipeline::answer(Arc::clone(&panel), request));
        config.service(scope("/panel").default_service(route));
    }
}
