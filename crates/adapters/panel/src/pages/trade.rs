//! `/panel/offers` and `/panel/orders`: the seller's trade as applications see it, without buyers' data.

use askama::Template;
use chrono::{DateTime, Datelike as _};
use kernel::{Keyset, Money, PageSize, Reader};
use offers::{Offer, OfferFilter};
use orders::{OrderFilter, OrderState, SellerOrder};
use uuid::Uuid;

use super::{ROWS, ok, with_query};
use crate::frame::Frame;
use crate::page_error::{PageError, PageResult};
use crate::page_request::SignedInRequest;

/// The most items of an order that are shown: a page of orders may have a megabyte of them.
pub(crate) const ITEMS: usize = 10;

#[derive(Template)]
#[template(path = "offers.html")]
struct OffersPage {
    frame: Frame,
    offers: Vec<Offer>,
    /// The address of the next page; empty for none.
    next: String,
}

#[derive(Template)]
#[template(path = "orders.html")]
struct OrdersPage {
    frame: Frame,
    orders: Vec<SellerOrder>,
    /// The address of the next page; empty for none.
    next: String,
}

pub(crate) async fn offers(request: SignedInRequest) -> PageResult {
    let (reader, after) = (Reader::in_panel(request.seller().id), after(&request)?);
    let offers = &request.panel.offers;
    let page = offers.offers(
        reader,
        OfferFilter::default(),
        after,
        PageSize::clamped(ROWS.into()),
    );
    let page = page.await?;
    ok(&OffersPage {
        frame: request.frame(request.texts().frame.offers),
        offers: page.items,
        next: next_page(&request, page.next),
    })
}

pub(crate) async fn orders(request: SignedInRequest) -> PageResult {
    let (reader, after) = (Reader::in_panel(request.seller().id), after(&request)?);
    let orders = &request.panel.orders;
    let page = orders.orders(
        reader,
        OrderFilter::default(),
        after,
        PageSize::clamped(ROWS.into()),
    );
    let page = page.await?;
    ok(&OrdersPage {
        frame: request.frame(request.texts().frame.orders),
        orders: page.items,
        next: next_page(&request, page.next),
    })
}

/// How often the seller may still correct an order's parcel; None if it is not on its way.
pub(crate) const fn corrections_left(order: &SellerOrder) -> Option<u8> {
    match &order.state {
        OrderState::Shipped { shipment, .. } => Some(shipment.corrections_left),
        _ => None,
    }
}

pub(crate) fn price(price: Money) -> String {
    let amount = price.amount();
    format!("{}.{:02} {}", amount / 100, amount % 100, kernel::CURRENCY)
}

/// The address of the page that begins after this position; empty for none.
fn next_page(request: &SignedInRequest, next: Option<Keyset>) -> String {
    let position = |next: Keyset| format!("{}_{}", next.at.timestamp_micros(), next.id);
    next.map_or_else(String::new, |next| {
        with_query(&request.path, "after", &position(next))
    })
}

/// The position after which the page begins, if any: of a time that PostgreSQL has, too.
fn after(request: &SignedInRequest) -> PageResult<Option<Keyset>> {
    let position = request.query.get("after").filter(|position| !position.is_empty());
    let parsed = position.map(|position| {
        let (at, id) = position.split_once('_')?;
        let at = DateTime::from_timestamp_micros(at.parse().ok()?)?;
        let id = Uuid::parse_str(id).ok()?;
        (1970..10_000).contains(&at.year()).then_some(Keyset { at, id })
    });
    parsed.map(|parsed| parsed.ok_or(PageError::NotFound)).transpose()
}
