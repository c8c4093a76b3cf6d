//! The page of the sandbox under `/sandbox` of the public listener. It plays buyer, marketplace, carrier and
//! receiver by calling the public interfaces, reads its lists through ports (D143), and shows what happens.
//! `serve` does not have it.

mod calls;
mod client;
mod guard;
mod inbox;
mod live;
mod pages;
mod timeline;
mod trade;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::http::{Method, StatusCode};
use actix_web::web::{ServiceConfig, scope};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use kernel::{Clock, PageSize, Randomness, SellerId, StoreError};
use oauth::ApplicationDirectory;
use offers::OfferReader;
use orders::{
    OrderDirectory, OrderFilter, OrderId, OrderReader, OrderStatus, TrackingNumber, TrackingStatus,
};
use serde::{Deserialize, Serialize};
use tokio::sync::{Mutex, watch};
use url::form_urlencoded;
use uuid::Uuid;
use web::assets::Asset;
use web::body::BodyLimits;
use web::form::Form;
use web::front::Front;
use web::request::{Answer, Request};
use web::{ServiceSettings, Tasks, head};
use webhooks::SubscriptionReader;

pub use timeline::{Kind, Row, Timeline};

use crate::client::Walk;
use crate::inbox::Inbox;
use crate::pages::{PageRefusal, Shown};

/// A seller of the sandbox. Of one that was registered since the seeding, password and token are empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxSeller {
    pub id: Uuid,
    pub seller_no: i32,
    pub email: String,
    pub password: String,
    /// Has the scopes in use.
    pub personal_token: String,
}

/// The seller that a form or query chooses, the first by default, and its place among the sellers.
pub(crate) type Chosen<'a> = (usize, &'a SandboxSeller);

/// An order that this seller can ship now: paid, and without another seller's items.
pub async fn shippable(orders: &dyn OrderReader, seller: SellerId) -> Result<Option<OrderId>, StoreError> {
    let filter = OrderFilter {
        status: Some(OrderStatus::Processing),
        ..OrderFilter::default()
    };
    let most = PageSize::clamped(200);
    let waiting = orders.orders(seller.into(), filter, None, most).await?;
    let mut own = waiting.items.iter().filter(|order| !order.several_sellers);
    Ok(own.next().map(|order| order.id))
}

/// From now on the simulated carriers answer this status when asked about parcels with this number, and they are
/// asked at the worker's next look.
pub type SetParcel =
    dyn Fn(TrackingNumber, TrackingStatus) -> BoxFuture<'static, Result<(), StoreError>> + Send + Sync;

/// What the page needs of the sandbox.
#[derive(Clone)]
pub struct Settings {
    /// The origin of the API, reachable from this process, without a trailing slash.
    pub api_url: String,
    /// The origin of the back office, likewise.
    pub backoffice_url: String,
    pub backoffice_token: String,
    /// At least one; those with a token come first, and those that are registered meanwhile last.
    pub sellers: watch::Receiver<Vec<SandboxSeller>>,
    /// A public client whose redirect URI is `/sandbox/client` at [`Self::api_url`]; empty if it could not be
    /// registered.
    pub client_id: String,
    /// The folder of mails, `<mail id>.eml`.
    pub mails: PathBuf,
    pub set_parcel: Arc<SetParcel>,
    pub offers: Arc<dyn OfferReader>,
    pub orders: Arc<dyn OrderReader>,
    pub directory: Arc<dyn OrderDirectory>,
    pub applications: Arc<dyn ApplicationDirectory>,
    pub subscriptions: Arc<dyn SubscriptionReader>,
    pub timeline: Timeline,
    pub clock: Arc<dyn Clock>,
    pub randomness: Arc<dyn Randomness>,
    pub service: Arc<ServiceSettings>,
    /// Ends event streams and delayed answers when the process stops.
    pub tasks: Tasks,
}

/// The page. Clones share what it keeps.
#[derive(Clone)]
pub struct SandboxPage {
    pub(crate) settings: Settings,
    /// The sellers of now.
    pub(crate) sellers: Vec<SandboxSeller>,
    pub(crate) http: reqwest::Client,
    /// Proves that a form is of a page of this sandbox.
    pub(crate) form_token: String,
    pub(crate) inbox: Arc<Inbox>,
    /// The built-in client's walk. Locked while a call is made, so that a form that is sent twice uses nothing
    /// twice.
    pub(crate) client: Arc<Mutex<Walk>>,
}

impl SandboxPage {
    pub fn new(settings: Settings) -> Result<Self, reqwest::Error> {
        Ok(Self {
            http: calls::client()?,
            form_token: URL_SAFE_NO_PAD.encode(settings.randomness.secret()),
            inbox: Arc::default(),
            client: Arc::new(Mutex::new(Walk::begin(&settings))),
            sellers: Vec::new(),
            settings,
        })
    }
}

/// Serves `/sandbox` and everything below it. Call it once per server thread, before the listener that takes
/// all other requests.
pub fn configure(page: Arc<SandboxPage>) -> impl FnOnce(&mut ServiceConfig) {
    move |config| {
        let front = Front::public("sandbox", &page.settings.service);
        let answer = move |request| {
            let page = SandboxPage {
                sellers: page.settings.sellers.borrow().clone(),
                ..SandboxPage::clone(&page)
            };
            async move { page.answer(request).await }
        };
        config.service(scope("/sandbox").default_service(front.route(answer)));
    }
}

/// The largest form, and the largest delivery.
const BODY_LIMITS: BodyLimits = BodyLimits {
    cap: 64 * 1024,
    within: Duration::from_secs(10),
};

impl SandboxPage {
    async fn answer(&self, mut request: Request) -> Answer {
        let shown = self.respond(&mut request).await;
        // The rest of a refused body is not read, so the connection ends; for simplicity also where there was none.
        let closes = shown.is_err();
        let mut response = shown.unwrap_or_else(|refusal| pages::refused(self, request.path(), refusal));
        guard::secure(&mut response, &request.trace_id);
        request.end(response, "/sandbox", closes)
    }

    async fn respond(&self, request: &mut Request) -> Shown {
        if !guard::is_here(request.http.peer_addr(), request.headers()) {
            return Ok(HttpResponse::Forbidden().body(guard::NOT_FROM_HERE));
        }
        head::check(request.http.head()).map_err(PageRefusal::bad)?;
        let is_post = *request.method() == Method::POST;
        if let Some(n) = request.path().strip_prefix("/sandbox/inbox/") {
            let n = n.parse().ok();
            let n = n.filter(|n: &usize| is_post && *n < self.sellers.len());
            return inbox::receive(self, n.ok_or_else(missing)?, request).await;
        }
        if !is_post && !matches!(*request.method(), Method::GET | Method::HEAD) {
            return Err(missing());
        }
        let sent = if is_post {
            request.body(BODY_LIMITS).await.map_err(PageRefusal::bad)?
        } else {
            Bytes::copy_from_slice(request.query().as_bytes())
        };
        // Not as `Form::parse`: a basket has a field for each offer.
        let form: Form = form_urlencoded::parse(&sent).into_owned().collect();
        if is_post && !guard::is_own_form(request.headers(), form.get("token"), &self.form_token) {
            return Err(PageRefusal::new(StatusCode::FORBIDDEN, guard::FOREIGN_FORM));
        }
        self.show(request, is_post, &form).await
    }

    /// The seller that a form or query chooses.
    fn chosen(&self, form: &Form) -> Shown<Chosen<'_>> {
        let n = form.get("seller").map_or(Ok(0), str::parse).ok();
        let chosen = n.and_then(|n: usize| Some((n, self.sellers.get(n)?)));
        let unknown = "The sandbox has no such seller: /sandbox lists them.";
        chosen.ok_or_else(|| PageRefusal::missing(unknown))
    }

    /// Every page and endpoint. `form` is the query of one that changes nothing, and the body of another.
    async fn show(&self, request: &Request, is_post: bool, form: &Form) -> Shown {
        Ok(match (is_post, request.path()) {
            (false, "/sandbox" | "/sandbox/") => trade::first_steps(self, self.chosen(form)?).await?,
            (false, "/sandbox/shop") => trade::shop(self).await?,
            (false, "/sandbox/marketplace") => trade::marketplace(self, self.chosen(form)?).await?,
            (false, "/sandbox/receiver") => inbox::receiver(self, self.chosen(form)?).await?,
            (false, "/sandbox/client") => client::walk(self, form).await?,
            (false, "/sandbox/timeline") => live::timeline(self, form, request.query())?,
            (false, "/sandbox/live") => live::live(self),
            (false, "/sandbox/api/offers") => trade::offers_json(self).await?,
            (false, "/sandbox/api/timeline") => live::json(self, form)?,
            (true, "/sandbox/call") => pages::call(self, form).await?,
            (true, "/sandbox/preview") => pages::preview(self, form)?,
            (true, "/sandbox/sign-in") => trade::sign_in(self, self.chosen(form)?).await?,
            (true, "/sandbox/client") => client::step(self, form).await?,
            (true, "/sandbox/api/carrier") => trade::carrier(self, form).await?,
            (true, "/sandbox/api/receiver") => inbox::behave(self, self.chosen(form)?, form)?,
            (true, _) => return Err(missing()),
            (false, path) => {
                if let Some(id) = path.strip_prefix("/sandbox/mail/") {
                    return live::mail(self, id).await;
                }
                let asset = pages::ASSETS.iter().find(|asset| asset.address == path);
                asset.map(Asset::response).ok_or_else(missing)?
            }
        })
    }
}

fn missing() -> PageRefusal {
    PageRefusal::missing("The sandbox's page has no such address: go to /sandbox.")
}
