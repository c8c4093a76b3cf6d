//! The sellers' panel and the screen of consent: plain pages and forms that work without JavaScript, under `/panel` of the
//! public listener.
//!
//! Every request comes in through one service ([`configure`]); which page it is for, who may see it and whether a form has to
//! prove where it comes from stands in one table (`routes`), so that no page can forget to ask.

mod assets;
mod browser;
mod fields;
mod frame;
mod issues;
mod language;
mod next;
mod pages;
mod pipeline;
mod refusal;
mod routes;
mod texts;
mod visit;

pub use routes::{Access, pages};

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use accounts::{PanelReader, PasswordHasher, SellerReader};
use actix_web::web::{ServiceConfig, scope};
use chrono::TimeDelta;
use ipnet::IpNet;
use kernel::{Randomness, Sealer};
use oauth::{ApplicationReader, GrantReader, RateCounter};
use usecases::UnitOfWork;
use usecases::sign_in::AttemptLimits;
use web::front::Front;
use web::{Tasks, TrustedProxies};
use webhooks::SubscriptionReader;

/// What the panel works with.
#[derive(Clone)]
pub struct Panel {
    /// Opens the transactions of what changes something.
    pub units: Arc<dyn UnitOfWork>,
    /// Reads sessions, links, tokens and usage.
    pub panel: Arc<dyn PanelReader>,
    /// Reads connections.
    pub grants: Arc<dyn GrantReader>,
    /// Reads subscriptions and deliveries.
    pub subscriptions: Arc<dyn SubscriptionReader>,
    /// Reads applications.
    pub applications: Arc<dyn ApplicationReader>,
    /// Reads accounts.
    pub sellers: Arc<dyn SellerReader>,
    /// Counts attempts to sign in.
    pub rates: Arc<dyn RateCounter>,
    /// Hashes and compares passwords.
    pub passwords: Arc<dyn PasswordHasher>,
    /// Opens requests for consent, and seals what is shown once.
    pub sealer: Arc<dyn Sealer>,
    /// Makes ids and secrets.
    pub randomness: Arc<dyn Randomness>,
    /// Carries what writes past the end of its request.
    pub tasks: Tasks,
    /// What the operator has chosen.
    pub settings: Arc<PanelSettings>,
}

/// What the operator chooses about the panel.
pub struct PanelSettings {
    /// The origin that browsers use, and the OAuth issuer; without a trailing slash. Cookies are `Secure` and browsers are told
    /// to stay with https where it is https.
    pub public_url: String,
    /// What the service is called on every page.
    pub service_name: String,
    /// Where the documentation is read.
    pub docs_url: String,
    /// How long a code for the exchange is valid (contract: 10 minutes).
    pub code_ttl: TimeDelta,
    /// How many attempts to sign in are let through.
    pub attempts: AttemptLimits,
    /// Requests a minute of an application that has no limit of its own.
    pub default_rate_limit: NonZeroU32,
    /// The proxies whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<IpNet>,
    /// How long a browser may take to send a form.
    pub body_timeout: Duration,
}

impl PanelSettings {
    /// Whether browsers reach the panel by https.
    pub(crate) fn https(&self) -> bool {
        self.public_url.starts_with("https://")
    }
}

/// Serves `/panel` and all below it; call it once for each server thread, and before the listener that takes every request
/// that nobody else does.
pub fn configure(panel: Panel) -> impl FnOnce(&mut ServiceConfig) {
    move |config| {
        let proxies = TrustedProxies::new(panel.settings.trusted_proxies.iter().copied());
        let front = Front::public("panel", proxies, panel.randomness.as_ref());
        let panel = Arc::new(panel);
        let route = front.route(move |request| pipeline::answer(Arc::clone(&panel), request));
        config.service(scope("/panel").default_service(route));
    }
}
