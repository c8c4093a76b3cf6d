//! The first page: a seller's credentials, and the calls to begin with; the buyer's: the catalogue of all sellers, a
//! basket, orders; and the marketplace's: offers, applications, and the carriers that the sandbox simulates.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use actix_web::HttpResponse;
use askama::Template;
use kernel::{PageSize, SellerId};
use oauth::{Application, ApplicationStatus};
use offers::{Offer, OfferFilter, OfferStatus, PriceSource, Stock};
use orders::{OrderFilter, OrderRef, OrderStatus, SellerOrder, TrackingNumber, TrackingStatus};
use reqwest::Method;
use serde_json::{Map, Value, json};
use url::{Position, Url};
use web::form::Form;

use crate::calls::{Answered, By, Call, entered_value, text};
use crate::pages::{Frame, Input, PageRefusal, Shown, html, see_other};
use crate::{Chosen, SandboxPage, SandboxSeller, shippable};

/// The most offers in the catalogue, of which each seller has the same share.
const CATALOGUE: usize = 200;
/// The most orders that are shown.
const LATEST: i64 = 12;

const PRICE: Input<'static> = ("/price/amount", "Price in grosze", &[]);
const STOCK: Input<'static> = ("/stock", "Stock", &[]);
const NUMBER: Input<'static> = ("/tracking_number", "Tracking number", &[]);
const NEW_OFFER: &[Input<'static>] = &[("/title", "Title", &[]), PRICE, STOCK];
/// The places of a shipment that a person may change.
const PARCEL: &[Input<'static>] = &[("/carrier", "Carrier", &[]), NUMBER];

/// A seller, by its place in the page's list, and one of its offers.
type Listed<'a> = (usize, &'a SandboxSeller, Offer);

/// Something with what can be done to it.
pub(crate) struct Card {
    pub(crate) title: String,
    pub(crate) about: String,
    pub(crate) lines: Vec<String>,
    /// What the timeline knows it by.
    pub(crate) id: String,
    pub(crate) buttons: Vec<String>,
}

/// The newest offers of a seller.
async fn newest(page: &SandboxPage, seller: &SandboxSeller, most: i64) -> Shown<Vec<Offer>> {
    let (reader, most) = (SellerId::from(seller.id).into(), PageSize::clamped(most));
    let offers = page
        .settings
        .offers
        .offers(reader, OfferFilter::default(), None, most);
    Ok(offers.await?.items)
}

/// The newest offers of each seller.
async fn catalogue(page: &SandboxPage) -> Shown<Vec<Listed<'_>>> {
    let mut all = Vec::new();
    let share = i64::try_from(CATALOGUE / page.sellers.len().max(1)).unwrap_or(1);
    for (n, seller) in page.sellers.iter().enumerate() {
        let offers = newest(page, seller, share).await?.into_iter();
        all.extend(offers.map(|offer| (n, seller, offer)));
    }
    Ok(all)
}

/// The amount in grosze.
fn amount(offer: &Offer) -> Option<i64> {
    offer.price.map(|price| price.money.amount())
}

/// A price for people.
fn shown_price(offer: &Offer) -> String {
    amount(offer).map_or_else(
        || "no price yet".to_owned(),
        |amount| format!("{}.{:02} PLN", amount / 100, amount % 100),
    )
}

#[derive(Template)]
#[template(path = "first_steps.html")]
struct FirstStepsPage<'a> {
    frame: Frame<'a>,
    buttons: Vec<String>,
    /// None while no order waits to be shipped.
    ship: Option<String>,
}

/// `GET /sandbox`.
pub(crate) async fn first_steps(page: &SandboxPage, (n, seller): Chosen<'_>) -> Shown {
    let offers = newest(page, seller, 1).await?;
    let offer = offers.first().map(|offer| offer.id.to_string());
    let offer = offer.unwrap_or_default();
    let first = |method, path: &str, body| Call::new(By::Seller(n), method, path, body);
    let read = |path: &str| first(Method::GET, path, Value::Null);
    // Those that the sandbox prints.
    let calls = [
        ("Run: Who am I?", read("/v1/me")),
        ("Run: My offers, newest first", read("/v1/offers?limit=5")),
        ("Run: One offer", read(&format!("/v1/offers/{offer}"))),
        (
            "Run: Orders that are paid and wait to be shipped",
            read("/v1/orders?status=processing&limit=5"),
        ),
    ];
    let order = shippable(&*page.settings.orders, seller.id.into()).await?;
    let ship = order.map(|order| {
        let path = format!("/v1/orders/{order}/shipments");
        let parcel = json!({ "carrier": "inpost", "tracking_number": format!("LATER-{order}") });
        let mut call = first(Method::POST, &path, parcel);
        call.key = Some(format!("ship-{order}"));
        page.button("Run: Ship one of them", call, &[])
    });
    Ok(html(&FirstStepsPage {
        frame: page.frame("First steps"),
        buttons: calls.map(|(label, call)| page.button(label, call, &[])).into(),
        ship,
    }))
}

/// The marketplace requests a link into the panel.
fn link(seller: &SandboxSeller) -> Call {
    let path = format!("/sellers/{}/sign-in-links", seller.id);
    Call::new(By::Office, Method::POST, path, Value::Null)
}

/// `POST /sandbox/sign-in`: into the panel as a seller.
pub(crate) async fn sign_in(page: &SandboxPage, (_, seller): Chosen<'_>) -> Shown {
    let answer = page.make(&link(seller)).await?.json();
    let url = Url::parse(text(&answer, "url")).map_err(|_| {
        let refusal = answer
            .pointer("/errors/0")
            .map_or("", |error| text(error, "message"));
        format!("The back office gave no link. {refusal}")
    })?;
    // The path alone: the browser stays at the name by which it came.
    Ok(see_other(&url[Position::BeforePath..]))
}

#[derive(Template)]
#[template(path = "shop.html")]
struct ShopPage<'a> {
    frame: Frame<'a>,
    offers: Vec<Listed<'a>>,
    place: Call,
    orders: Vec<Card>,
}

/// `GET /sandbox/shop`.
pub(crate) async fn shop(page: &SandboxPage) -> Shown {
    let mut offers = catalogue(page).await?;
    let is_sold = |offer: &Offer| offer.price.is_some() && offer.stock.map(Stock::get) != Some(0);
    offers.retain(|(_, _, offer)| offer.status == OfferStatus::Published && is_sold(offer));
    // The command that is shown before something is in the basket has the first offer.
    let piece = |(n, _, offer): &Listed<'_>| (format!("q/{n}/{}", offer.id), "1".to_owned());
    let example = offers.iter().take(1).map(piece).collect();
    Ok(html(&ShopPage {
        frame: page.frame("Buyer"),
        place: place(page, &example).keyed(page),
        offers,
        orders: latest(page).await?,
    }))
}

/// `GET /sandbox/api/offers`: the newest offers of all sellers of the sandbox.
pub(crate) async fn offers_json(page: &SandboxPage) -> Shown {
    let offers = catalogue(page).await?;
    let item = |(_, seller, offer): &Listed<'_>| {
        json!({
            "seller_id": seller.id.to_string(), "seller_no": seller.seller_no, "id": offer.id.to_string(),
            "title": offer.product.title, "status": offer.status.as_str(), "price": amount(offer),
            "stock": offer.stock.map(Stock::get),
        })
    };
    let items: Vec<_> = offers.iter().map(item).collect();
    Ok(HttpResponse::Ok().json(json!({ "items": items })))
}

/// The call that places the order of a basket. A field `q/<seller>/<offer>` has the quantity of an offer.
pub(crate) fn place(page: &SandboxPage, form: &Form) -> Call {
    let items = form.pairs().filter_map(|(name, quantity)| {
        let (seller, offer) = name.strip_prefix("q/")?.split_once('/')?;
        let seller = page.sellers.get(seller.parse::<usize>().ok()?)?;
        let quantity = Some(quantity.trim()).filter(|quantity| !["", "0"].contains(quantity))?;
        let quantity = entered_value(&json!(0), quantity);
        Some(json!({ "seller_id": seller.id.to_string(), "offer_id": offer, "quantity": quantity }))
    });
    let text = |name, default: &str| form.get(name).unwrap_or(default).to_owned();
    let wants = |name| form.get(name).is_some();
    let order = json!({
        "payment_method": "blik",
        "delivery_method": if wants("point") { "parcel_locker" } else { "courier" },
        "buyer": { "name": text("name", "Ewa Żak"), "email": text("email", "ewa@poczta.example"), "phone": null },
        "shipping_address": { "line1": "ul. Długa 1", "postal_code": "00-950", "city": "Warszawa", "country": "PL" },
        "delivery_point": wants("point").then(|| json!({ "id": "WAW01M", "city": "Warszawa" })),
        "invoice": wants("invoice").then(|| json!({ "company": "Żak i Syn", "tax_id": "5260250274" })),
        "is_test": wants("test"),
        "items": items.collect::<Vec<_>>(),
    });
    Call::new(By::Office, Method::POST, "/orders", order)
}

#[derive(Template)]
#[template(path = "marketplace.html")]
struct MarketplacePage<'a> {
    frame: Frame<'a>,
    chosen: usize,
    carrier: String,
    new_offer: String,
    offers: Vec<Card>,
    applications: Vec<Card>,
}

/// `GET /sandbox/marketplace`: the carriers, and one seller's offers and applications.
pub(crate) async fn marketplace(page: &SandboxPage, (n, seller): Chosen<'_>) -> Shown {
    let offers = newest(page, seller, 15).await?.into_iter();
    let directory = &page.settings.applications;
    let applications = directory.applications_at(seller.id.into(), None, 50).await?;
    Ok(html(&MarketplacePage {
        frame: page.frame("Marketplace"),
        chosen: n,
        carrier: carriers_say(page, "TRANSIT0001"),
        new_offer: page.button("Add a new offer", new_offer(page, seller), NEW_OFFER),
        offers: offers.map(|offer| offer_card(page, n, seller, offer)).collect(),
        applications: applications
            .into_iter()
            .map(|listed| application(page, listed.application))
            .collect(),
    }))
}

fn new_offer(page: &SandboxPage, seller: &SandboxSeller) -> Call {
    let id = page.settings.randomness.uuid();
    let offer = json!({
        "title": "Teapot", "handle": format!("teapot-{id}"), "status": "published",
        "url": format!("https://shop.example/teapot-{id}"),
        "price": { "amount": 4990, "currency": "PLN" }, "stock": 12,
    });
    let path = format!("/sellers/{}/offers/{id}", seller.id);
    Call::new(By::Office, Method::PUT, path, offer)
}

/// The button of a POST to the back office.
fn office(page: &SandboxPage, label: &str, path: String, body: Value, inputs: &[Input<'_>]) -> String {
    page.button(label, Call::new(By::Office, Method::POST, path, body), inputs)
}

fn offer_card(page: &SandboxPage, n: usize, seller: &SandboxSeller, offer: Offer) -> Card {
    let path = format!("/sellers/{}/offers/{}", offer.seller, offer.id);
    let post = |label, what, body, inputs| office(page, label, format!("{path}/{what}"), body, inputs);
    let decision = |label, decision| post(label, "moderation", json!({ "decision": decision }), &[]);
    let stock = offer.stock.map(Stock::get);
    let price = amount(&offer).map(|amount| json!({ "amount": amount, "currency": "PLN" }));
    // A price or stock that the offer does not have cannot be changed.
    let money = price.clone().map(|price| (("price".to_owned(), price), PRICE));
    let count = stock.map(|stock| (("stock".to_owned(), Value::from(stock)), STOCK));
    let (change, changed): (Map<String, Value>, Vec<_>) = [money, count].into_iter().flatten().unzip();
    let mut buttons = vec![decision("Approve", "approve"), decision("Reject", "reject")];
    let is_manual = offer.price.map(|price| price.source) == Some(PriceSource::Manual);
    if let Some(price) = price.filter(|_| !is_manual) {
        let price = json!({ "price": price });
        buttons.push(post("Reprice", "automatic-price", price, &[PRICE]));
    }
    if !seller.personal_token.is_empty() && !changed.is_empty() {
        let path = format!("/v1/offers/{}", offer.id);
        let change = Call::new(By::Seller(n), Method::PATCH, path, change.into());
        buttons.push(page.button("Change as its seller", change, &changed));
    }
    Card {
        about: offer.status.as_str().to_owned(),
        lines: vec![
            shown_price(&offer),
            stock.map_or_else(
                || "stock not counted".to_owned(),
                |stock| format!("{stock} in stock"),
            ),
        ],
        id: offer.id.to_string(),
        buttons,
        title: offer.product.title,
    }
}

fn application(page: &SandboxPage, found: Application) -> Card {
    let id = found.client_id.to_string();
    let button = |label, step, body| office(page, label, format!("/applications/{id}/{step}"), body, &[]);
    let scopes: Vec<_> = found.requested.iter().map(|scope| scope.to_string()).collect();
    let mut buttons = vec![match found.status {
        ApplicationStatus::Pending => button("Accept", "acceptance", Value::Null),
        ApplicationStatus::Active => button("Suspend", "suspension", Value::Null),
        ApplicationStatus::Suspended => button("Reinstate", "reinstatement", Value::Null),
    }];
    if found.status == ApplicationStatus::Active && !scopes.is_empty() {
        let label = format!("Accept also {}", found.requested);
        buttons.push(button(&label, "acceptance", json!({ "scopes": scopes })));
    }
    Card {
        title: found.name,
        about: found.status.as_str().to_owned(),
        lines: vec![id.clone()],
        id,
        buttons,
    }
}

/// `POST /sandbox/api/carrier`: what the simulated carriers say of a parcel from now on.
pub(crate) async fn carrier(page: &SandboxPage, form: &Form) -> Shown {
    let field = |name| form.get(name).unwrap_or_default().trim();
    let (number, status) = (field("tracking_number"), field("status"));
    let parcel = TrackingNumber::new(number.to_owned())
        .map_err(|invalid| PageRefusal::bad(format!("The tracking number {invalid}.")))?;
    let all = TrackingStatus::ALL.map(TrackingStatus::as_str).join(", ");
    let said =
        TrackingStatus::parse(status).ok_or_else(|| PageRefusal::bad(format!("`status`: one of {all}.")))?;
    (page.settings.set_parcel)(parcel, said).await?;
    Ok(HttpResponse::Ok().body(format!(
        "From now on carriers report {number} as `{status}`, within 15 seconds.\n"
    )))
}

/// The latest orders of all sellers, newest first.
async fn latest(page: &SandboxPage) -> Shown<Vec<Card>> {
    // One order's parts stand together.
    let mut all: BTreeMap<_, Vec<SellerOrder>> = BTreeMap::new();
    let most = PageSize::clamped(LATEST);
    for seller in &page.sellers {
        let (reader, filter) = (SellerId::from(seller.id).into(), OrderFilter::default());
        let orders = page.settings.orders.orders(reader, filter, None, most);
        for part in orders.await?.items {
            all.entry((Reverse(part.placed_at), part.id))
                .or_default()
                .push(part);
        }
    }
    let cards = all.values().filter_map(|parts| order(page, parts));
    Ok(cards.take(most.get().into()).collect())
}

/// The order that an answer is about, also a test order.
pub(crate) async fn after(page: &SandboxPage, answer: &Answered) -> Option<Card> {
    let id = text(&answer.json(), "order_id").parse().ok()?;
    // Without the database, the answer is shown alone.
    let parts = page.settings.directory.parts(&OrderRef::Id(id)).await.ok()?;
    order(page, &parts)
}

/// An order, with what buyer, seller, marketplace and carriers can do to it.
fn order(page: &SandboxPage, parts: &[SellerOrder]) -> Option<Card> {
    let first = parts.first()?;
    let id = first.id.to_string();
    let status = OrderStatus::aggregate(parts.iter().map(SellerOrder::status))?;
    // One parcel may have several sellers' parts.
    let parcels: BTreeMap<_, _> = parts.iter().filter_map(parcel).collect();
    let step = |label, step| office(page, label, format!("/orders/{id}/{step}"), Value::Null, &[]);
    let mut buttons = Vec::new();
    if status == OrderStatus::Pending {
        buttons.push(step("Pay", "payment"));
    }
    if status == OrderStatus::Processing {
        // The page has no token of a seller that was registered since the seeding.
        let is_own = |own: &SandboxSeller| first.seller == own.id.into() && !own.personal_token.is_empty();
        let own = page.sellers.iter().position(is_own);
        if let Some(n) = own.filter(|_| !first.several_sellers) {
            let path = format!("/v1/orders/{id}/shipments");
            let call = Call::new(By::Seller(n), Method::POST, path, new_parcel(page));
            buttons.push(page.button("Ship as its seller", call, PARCEL));
            let path = format!("/v1/orders/{id}?fields=status,buyer");
            let call = Call::new(By::Seller(n), Method::GET, path, Value::Null);
            buttons.push(page.button("Read as its seller", call, &[]));
        }
        let (label, path) = ("Ship as the marketplace", format!("/orders/{id}/shipment"));
        buttons.push(office(page, label, path, new_parcel(page), PARCEL));
    }
    if matches!(status, OrderStatus::Processing | OrderStatus::Shipped) {
        buttons.push(step("Report the delivery", "delivery"));
        buttons.extend(parcels.keys().map(|number| carriers_say(page, number)));
    }
    if status < OrderStatus::Shipped && parcels.is_empty() {
        buttons.push(step("Cancel", "cancellation"));
    }
    buttons.push(step("Erase the buyer", "buyer-erasure"));
    let items = parts.iter().flat_map(|part| &part.items).map(|item| {
        let title = item.title.as_deref().unwrap_or("(without a title)");
        format!("{} × {title}", item.quantity)
    });
    Some(Card {
        title: first.number.as_str().to_owned(),
        about: status.as_str().to_owned(),
        lines: items.chain(parcels.into_values()).collect(),
        buttons,
        id,
    })
}

/// A parcel's number, and the parcel for people.
fn parcel(part: &SellerOrder) -> Option<(&str, String)> {
    let shipment = part.shipment()?;
    let status = shipment.tracking_status;
    let status = status.map_or("no answer of its carrier yet", TrackingStatus::as_str);
    let (carrier, number) = (shipment.carrier.display_name(), shipment.tracking_number.as_str());
    Some((number, format!("Parcel {number} with {carrier}: {status}")))
}

fn new_parcel(page: &SandboxPage) -> Value {
    // Carriers know no other parcel of this number.
    let id = page.settings.randomness.uuid().simple().to_string();
    let unique = id.get(24..).unwrap_or_default().to_uppercase();
    json!({ "carrier": "inpost", "tracking_number": format!("TRANSIT{unique}") })
}

/// Sets what the carriers say of a parcel.
fn carriers_say(page: &SandboxPage, number: &str) -> String {
    let statuses = TrackingStatus::ALL.map(TrackingStatus::as_str);
    let form = json!({ "token": page.form_token, "tracking_number": number, "status": "delivered" });
    let call = Call::new(By::Page, Method::POST, "/sandbox/api/carrier", form);
    page.button("Set", call, &[NUMBER, ("/status", "Carriers say", &statuses)])
}
