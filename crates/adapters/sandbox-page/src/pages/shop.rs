//! The buyer's page: the catalogue of all sellers, a basket, orders.

use actix_web::HttpResponse;
use askama::Template;
use kernel::PageSize;
use offers::{Offer, OfferFilter, OfferStatus, Stock};
use reqwest::Method;
use serde_json::json;
use web::form::Form;

use super::trade::{self, Role};
use super::{Card, Frame, Shown, html, unread};
use crate::calls::{By, Call};
use crate::{SandboxPage, SandboxSeller};

/// How many offers of each seller are listed.
const LISTED: i64 = 100;

/// A seller, by its place in the settings, and one of its offers.
type Listed<'a> = (usize, &'a SandboxSeller, Offer);

/// The newest offers of a seller.
pub(super) async fn newest(
    page: &SandboxPage,
    seller: &SandboxSeller,
    status: Option<OfferStatus>,
) -> Result<Vec<Offer>, String> {
    let filter = OfferFilter {
        status,
        ..OfferFilter::default()
    };
    let most = PageSize::clamped(LISTED);
    let offers = page.settings.offers.offers(seller.id, filter, None, most).await;
    Ok(offers.map_err(|error| unread(&error))?.items)
}

/// The newest offers of each seller.
async fn catalogue(page: &SandboxPage, status: Option<OfferStatus>) -> Result<Vec<Listed<'_>>, String> {
    let mut all = Vec::new();
    for (n, seller) in page.settings.sellers.iter().enumerate() {
        let offers = newest(page, seller, status).await?.into_iter();
        all.extend(offers.map(|offer| (n, seller, offer)));
    }
    Ok(all)
}

/// The amount in grosze.
pub(super) fn amount(offer: &Offer) -> Option<i64> {
    offer.price.map(|price| price.money.amount())
}

/// A price for people.
pub(super) fn price(offer: &Offer) -> String {
    amount(offer).map_or_else(
        || "no price".to_owned(),
        |amount| format!("{}.{:02} PLN", amount / 100, amount % 100),
    )
}

#[derive(Template)]
#[template(path = "shop.html")]
struct ShopPage<'a> {
    frame: Frame,
    offers: Vec<Listed<'a>>,
    curl: String,
    orders: Vec<Card>,
}

/// `GET /sandbox/shop`.
pub(crate) async fn shop(page: &SandboxPage, form: &Form) -> Shown {
    let mut offers = catalogue(page, Some(OfferStatus::Published)).await?;
    offers.retain(|(_, _, offer)| offer.price.is_some() && offer.stock.map(Stock::get) != Some(0));
    let shop = ShopPage {
        frame: page.frame("Buyer"),
        offers,
        curl: place(page, form).keyed(&page.settings).curl(&page.settings),
        orders: trade::latest(page, Role::Buyer).await?,
    };
    Ok(html(&shop))
}

/// `GET /sandbox/api/offers`: the newest offers of all sellers of the sandbox.
pub(crate) async fn offers_json(page: &SandboxPage) -> Shown {
    let offers = catalogue(page, None).await?;
    let item = |(_, seller, offer): &Listed<'_>| {
        json!({
            "seller_id": seller.id.to_string(), "seller_no": seller.seller_no, "id": offer.id.to_string(),
            "title": offer.title, "status": offer.status.as_str(), "price": amount(offer),
            "stock": offer.stock.map(Stock::get),
        })
    };
    let items: Vec<_> = offers.iter().map(item).collect();
    Ok(HttpResponse::Ok().json(json!({ "items": items })))
}

/// The call that places the order of a basket. A field `q/<seller>/<offer>` has the quantity of an offer.
pub(super) fn place(page: &SandboxPage, form: &Form) -> Call {
    let items = form.pairs().filter_map(|(name, quantity)| {
        let (seller, offer) = name.strip_prefix("q/")?.split_once('/')?;
        let seller = page.settings.sellers.get(seller.parse::<usize>().ok()?)?;
        let quantity = quantity.parse::<i64>().ok().filter(|quantity| *quantity > 0)?;
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
