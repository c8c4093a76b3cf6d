//! Shipments: a seller reports one and may correct it, or the marketplace reports one for an order of several
//! sellers.
//!
//! A report has three steps, because no carrier may be called while a transaction is open: check, ask the
//! carrier, record. The checks are repeated with the rows locked.

use chrono::{DateTime, Utc};
use kernel::{BrokenRules, Change, Invalid, OfferId, Randomness, SellerId, StoreError};
use orders::{
    Carrier, CarrierLookup, Cause, Correction, Lookup, NewShipment, OrderDirectory, OrderReader, OrderRef,
    OrderStore, PollSchedule, Reason, SellerOrder, ShipmentId, ShipmentLocked, ShipmentMail, TrackingNumber,
    TrackingReport,
};

use crate::failure::{ensure, present, refuse};
use crate::{Announcement, Failure};

#[derive(Debug, Clone)]
pub struct Report {
    pub order: OrderRef,
    pub carrier: Carrier,
    pub tracking_number: TrackingNumber,
    /// Items that the seller names. They must be its own; they do not limit the shipment.
    pub item_ids: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShippingRefusal {
    #[error("no such order")]
    NoSuchOrder,
    /// Items that are not the seller's own in this order.
    #[error("{0}")]
    Items(BrokenRules),
    #[error("{refused}")]
    Impossible {
        refused: orders::CommandRefusal,
        own_items: Vec<OfferId>,
    },
}

/// First step: refuses all that can be refused before a carrier is asked.
pub async fn check_report(
    orders: &dyn OrderReader,
    seller: SellerId,
    report: &Report,
) -> Result<SellerOrder, Failure<ShippingRefusal>> {
    let part = present(
        orders.order(seller.into(), &report.order).await?,
        ShippingRefusal::NoSuchOrder,
    )?;
    check_part(&part, report)?;
    Ok(part)
}

/// Second step: asks the carrier. Test orders and the carrier `Other` are not looked up. Any failure means
/// that the parcel is not known to be delivered.
pub async fn ask_carrier(
    carriers: &dyn CarrierLookup,
    is_test: bool,
    carrier: Carrier,
    number: &TrackingNumber,
) -> Option<TrackingReport> {
    if is_test || carrier == Carrier::Other {
        return None;
    }
    match carriers.look_up(carrier, number).await {
        Lookup::Found(tracking_report) => Some(tracking_report),
        Lookup::NotFound | Lookup::NotConfigured | Lookup::Unavailable(_) => None,
    }
}

/// Third step, in a transaction: the part changes its state, its parcel's tracking begins, and the buyer's
/// mail is queued.
pub async fn record_report(
    orders: &dyn OrderStore<Announcement>,
    randomness: &dyn Randomness,
    seller: SellerId,
    report: &Report,
    tracking_report: Option<TrackingReport>,
    schedule: PollSchedule,
    now: DateTime<Utc>,
) -> Result<SellerOrder, Failure<ShippingRefusal>> {
    let part = orders.lock_part(seller, &report.order).await?;
    let part = present(part, ShippingRefusal::NoSuchOrder)?;
    check_part(&part, report)?;
    let new = NewShipment {
        id: randomness.uuid().into(),
        carrier: report.carrier,
        tracking_number: report.tracking_number.clone(),
        tracking_report,
    };
    let change = ship(part, new, Cause::Seller, now)?;
    let after = change.after.clone();
    save(orders, randomness, vec![change], false, schedule, now).await?;
    Ok(after)
}

fn check_part(part: &SellerOrder, report: &Report) -> Result<(), Failure<ShippingRefusal>> {
    let own_items = own_items(part);
    let mut violations = BrokenRules::default();
    for (n, id) in report.item_ids.iter().enumerate() {
        if !id.parse().is_ok_and(|id| own_items.contains(&id)) {
            violations.add(
                format!("item_ids[{n}]"),
                Invalid::new("must be one of your own items in this order"),
            );
        }
    }
    violations
        .into_result(Some(()))
        .map_err(|violations| Failure::Refused(ShippingRefusal::Items(violations)))?;
    match part.check_shippable(Cause::Seller) {
        Ok(_) => Ok(()),
        Err(refused) => refuse(ShippingRefusal::Impossible { refused, own_items }),
    }
}

fn own_items(part: &SellerOrder) -> Vec<OfferId> {
    part.items.iter().map(|item| item.offer).collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CorrectionRefusal {
    #[error("no such shipment")]
    NoSuchShipment,
    #[error(transparent)]
    Locked(#[from] ShipmentLocked),
}

/// Corrects a seller's shipment, in a transaction: tracking begins anew, without asking the carrier now, and
/// the buyer gets another mail. [`crate::track_parcels`] locks the part too, and discards a later answer about
/// the former number.
pub async fn correct_shipment(
    orders: &dyn OrderStore<Announcement>,
    randomness: &dyn Randomness,
    seller: SellerId,
    (order, shipment): (&OrderRef, ShipmentId),
    correction: &Correction,
    schedule: PollSchedule,
    now: DateTime<Utc>,
) -> Result<SellerOrder, Failure<CorrectionRefusal>> {
    let part = orders.lock_part(seller, order).await?;
    let is_its = |part: &SellerOrder| part.shipment().is_some_and(|its| its.id == shipment);
    let part = present(part.filter(is_its), CorrectionRefusal::NoSuchShipment)?;
    let change = part.correct(correction.clone(), now);
    let change = change.map_err(|locked| Failure::Refused(locked.into()))?;
    let after = change.after.clone();
    if change.events.is_empty() {
        return Ok(after);
    }
    orders.end_tracking(seller, after.id).await?;
    // One that waits to be tried again would arrive after the correction, with the former number.
    orders.drop_retried_mails(after.id).await?;
    let change = Announcement::of_order(change, now);
    save(orders, randomness, vec![change], true, schedule, now).await?;
    Ok(after)
}

#[derive(Debug, Clone)]
pub struct MarketplaceShipment {
    pub order: OrderRef,
    /// One seller's part, or all parts that are not shipped yet.
    pub seller: Option<SellerId>,
    pub carrier: Carrier,
    pub tracking_number: TrackingNumber,
}

/// First step of the marketplace's shipment: refuses all that can be refused before a carrier is asked.
/// Returns the parts to ship.
pub async fn check_marketplace_shipment(
    orders: &dyn OrderDirectory,
    shipment: &MarketplaceShipment,
) -> Result<Vec<SellerOrder>, Failure<ShippingRefusal>> {
    to_ship(orders.parts(&shipment.order).await?, shipment)
}

/// Records the marketplace's shipment of one part or all, with one mail to the buyer. An order of several
/// sellers can only be shipped this way.
pub async fn record_marketplace_shipment(
    orders: &dyn OrderStore<Announcement>,
    randomness: &dyn Randomness,
    shipment: &MarketplaceShipment,
    tracking_report: Option<&TrackingReport>,
    schedule: PollSchedule,
    now: DateTime<Utc>,
) -> Result<Vec<SellerOrder>, Failure<ShippingRefusal>> {
    let parts = to_ship(orders.lock_order(&shipment.order).await?, shipment)?;
    let changes = parts.into_iter().map(|part| {
        let new = NewShipment {
            id: randomness.uuid().into(),
            carrier: shipment.carrier,
            tracking_number: shipment.tracking_number.clone(),
            tracking_report: tracking_report.cloned(),
        };
        ship(part, new, Cause::Marketplace, now)
    });
    let changes = changes.collect::<Result<Vec<_>, _>>()?;
    Ok(save(orders, randomness, changes, false, schedule, now).await?)
}

fn ship(
    part: SellerOrder,
    new: NewShipment,
    cause: Cause,
    now: DateTime<Utc>,
) -> Result<Change<SellerOrder, Announcement>, Failure<ShippingRefusal>> {
    let own_items = own_items(&part);
    match part.ship(new, cause, now) {
        Ok(change) => Ok(Announcement::of_order(change, now)),
        Err(refused) => refuse(ShippingRefusal::Impossible { refused, own_items }),
    }
}

/// Saves parts with a new or corrected shipment, begins the tracking of their parcels, and queues one mail to
/// the buyer.
async fn save(
    orders: &dyn OrderStore<Announcement>,
    randomness: &dyn Randomness,
    changes: Vec<Change<SellerOrder, Announcement>>,
    is_correction: bool,
    schedule: PollSchedule,
    now: DateTime<Utc>,
) -> Result<Vec<SellerOrder>, StoreError> {
    let after: Vec<_> = changes.iter().map(|change| change.after.clone()).collect();
    orders.save_parts(changes).await?;
    for parcel in after.iter().filter_map(|part| schedule.begin(part, now)) {
        orders.begin_tracking(parcel).await?;
    }
    let mail = |part| mail_about(part, is_correction, randomness);
    if let Some(mail) = after.iter().find_map(mail) {
        orders.queue_mail(mail).await?;
    }
    Ok(after)
}

/// The parts of a shipment: one seller's, or all that are not shipped yet. Each of them can be shipped.
fn to_ship(
    parts: Vec<SellerOrder>,
    shipment: &MarketplaceShipment,
) -> Result<Vec<SellerOrder>, Failure<ShippingRefusal>> {
    let concerned = |part: &SellerOrder| shipment.seller.is_none_or(|seller| part.seller == seller);
    let mut parts = parts.into_iter().filter(concerned).collect::<Vec<_>>();
    ensure(!parts.is_empty(), ShippingRefusal::NoSuchOrder)?;
    if shipment.seller.is_none() && parts.iter().any(|part| !is_shipped(part)) {
        parts.retain(|part| !is_shipped(part));
    }
    for part in &parts {
        if let Err(refused) = part.check_shippable(Cause::Marketplace) {
            let own_items = own_items(part);
            return refuse(ShippingRefusal::Impossible { refused, own_items });
        }
    }
    Ok(parts)
}

fn is_shipped(part: &SellerOrder) -> bool {
    part.check_shippable(Cause::Marketplace)
        .is_err_and(|refused| refused.reason == Reason::AlreadyShipped)
}

fn mail_about(part: &SellerOrder, is_correction: bool, randomness: &dyn Randomness) -> Option<ShipmentMail> {
    let shipment = part.shipment().filter(|shipment| shipment.buyer_notified)?;
    Some(ShipmentMail {
        id: randomness.uuid().into(),
        order: part.id,
        number: part.number.clone(),
        to: part.mail_address()?.to_owned(),
        name: part.buyer.as_ref().and_then(|buyer| buyer.name.clone()),
        carrier: shipment.carrier,
        tracking_number: shipment.tracking_number.clone(),
        is_correction,
    })
}

#[cfg(test)]
mod tests;
