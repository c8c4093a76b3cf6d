//! The page of the sandbox under `/sandbox` of the public listener. It plays buyer, marketplace, carrier and
//! receiver by calling the public interfaces (D143), and shows what happens. `serve` does not have it.

mod assets;
mod calls;
mod client;
mod guard;
mod inbox;
mod live;
mod pages;
mod timeline;

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use kernel::{Clock, Randomness, SellerId};
use offers::OfferReader;
use orders::OrderReader;
use web::ServiceSettings;

pub use timeline::{Kind, Row, Timeline};

/// A seller of the sandbox, as in `credentials.json`.
#[derive(Debug, Clone)]
pub struct SandboxSeller {
    pub id: SellerId,
    pub seller_no: i32,
    pub email: String,
    pub password: String,
    pub personal_token: String,
    /// The application for the seller's own use.
    pub client_id: String,
    pub client_secret: String,
    /// An order that is paid and waits to be shipped, if there was one.
    pub order: Option<String>,
}

/// What the simulated carriers answer.
#[async_trait]
pub trait SimulatedParcels: Send + Sync {
    /// From now on carriers answer `status` when asked about parcels with this number (a word of
    /// `TrackingStatus`), and they are asked at once. Fails with a sentence for the page.
    async fn set(&self, tracking_number: &str, status: &str) -> Result<(), String>;
}

/// What all threads share.
pub struct Settings {
    /// The origin of the API, reachable from this process, without a trailing slash.
    pub api_url: String,
    /// The origin of the back office, likewise.
    pub backoffice_url: String,
    pub backoffice_token: String,
    /// At least one.
    pub sellers: Vec<SandboxSeller>,
    /// The folder of mails, `<mail id>.eml`.
    pub mails: PathBuf,
    pub parcels: Arc<dyn SimulatedParcels>,
    pub timeline: Timeline,
    pub clock: Arc<dyn Clock>,
    pub randomness: Arc<dyn Randomness>,
    pub service: Arc<ServiceSettings>,
}
