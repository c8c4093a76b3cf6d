//! The moves over one seller's part of an order.
//!
//! Each move is total: it returns what becomes of the part with its events, or a refusal that names the state and the
//! command. Repeating a move of the marketplace is harmless; a seller ships once.

use chrono::{DateTime, Utc};
use kernel::Change;

use crate::{
    Carrier, Delivery, OrderId, OrderNumber, OrderState, OrderStatus, Parcel, SellerOrder, ShipmentId,
    Sighting, TrackingNumber, TrackingStatus,
};

/// What happened to an order, for those who subscribed to it (contract: Events).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderEvent {
    /// What happened.
    pub kind: OrderEventKind,
    /// The order.
    pub order: OrderId,
    /// Its number.
    pub number: OrderNumber,
}

/// The kinds of event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OrderEventKind {
    /// `order.created`.
    Created,
    /// `order.paid`.
    Paid,
    /// `order.shipped`.
    Shipped,
    /// `order.delivered`.
    Delivered,
    /// `order.cancelled`.
    Cancelled,
}

/// A command that the present state does not allow, with the contract's name for the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the order is {}: it cannot be {}", .status.as_str(), .command.participle())]
pub struct Refusal {
    /// Where the part stands.
    pub status: OrderStatus,
    /// What was asked for.
    pub command: Command,
    /// Why not.
    pub reason: Reason,
}

/// What may be asked of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// Book the payment.
    Pay,
    /// Call it off.
    Cancel,
    /// Record a shipment.
    Ship,
    /// Record a delivery.
    Deliver,
}

impl Command {
    const fn participle(self) -> &'static str {
        match self {
            Self::Pay => "paid",
            Self::Cancel => "cancelled",
            Self::Ship => "shipped",
            Self::Deliver => "delivered",
        }
    }
}

/// The contract's reasons, in the order in which they are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// `order_cancelled`.
    Cancelled,
    /// `order_unpaid`.
    Unpaid,
    /// `already_shipped`.
    AlreadyShipped,
    /// `multi_seller_order`.
    SeveralSellers,
}

/// What is reported when a parcel leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewShipment {
    /// The shipment's id.
    pub id: ShipmentId,
    /// Who carries it.
    pub carrier: Carrier,
    /// By which number.
    pub tracking_number: TrackingNumber,
    /// What the carrier said when it was asked, just before.
    pub sighting: Option<Sighting>,
}

/// Who reports a shipment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shipper {
    /// The seller, who cannot ship an order of several sellers.
    Seller,
    /// The marketplace, which ships any.
    Marketplace,
}

type Outcome = Result<Change<SellerOrder, OrderEvent>, Refusal>;

impl SellerOrder {
    /// A buyer has placed the order.
    pub fn placed(self) -> Change<Self, OrderEvent> {
        let event = self.event(OrderEventKind::Created);
        Change::made(self, vec![event])
    }

    /// The payment is booked: the buyer becomes readable.
    pub fn pay(self, now: DateTime<Utc>) -> Outcome {
        match self.state {
            OrderState::Pending => {
                let paid_at = now.max(self.placed_at);
                Ok(self.to(OrderState::Processing { paid_at }, &[OrderEventKind::Paid], now))
            }
            OrderState::Cancelled { paid_at: None, .. } => self.refuse(Command::Pay, Reason::Cancelled),
            _ => Ok(self.unchanged()),
        }
    }

    /// The buyer or the marketplace calls the order off, before it is shipped.
    pub fn cancel(self, now: DateTime<Utc>) -> Outcome {
        match self.state {
            OrderState::Pending | OrderState::Processing { .. } => {
                let paid_at = self.paid_at();
                let cancelled_at = now.max(paid_at.unwrap_or(self.placed_at));
                let state = OrderState::Cancelled {
                    paid_at,
                    cancelled_at,
                };
                Ok(self.to(state, &[OrderEventKind::Cancelled], now))
            }
            OrderState::Cancelled { .. } => Ok(self.unchanged()),
            OrderState::Shipped { .. } | OrderState::Delivered { .. } => {
                self.refuse(Command::Cancel, Reason::AlreadyShipped)
            }
        }
    }

    /// Checks whether a shipment may be recorded: cancelled, unpaid, shipped, several sellers, in this order.
    pub fn check_shippable(&self, shipper: Shipper) -> Result<DateTime<Utc>, Refusal> {
        let refuse = |reason| {
            Err(Refusal {
                status: self.status(),
                command: Command::Ship,
                reason,
            })
        };
        match self.state {
            OrderState::Cancelled { .. } => refuse(Reason::Cancelled),
            OrderState::Pending => refuse(Reason::Unpaid),
            OrderState::Shipped { .. } | OrderState::Delivered { .. } => refuse(Reason::AlreadyShipped),
            OrderState::Processing { .. } if self.several_sellers && shipper == Shipper::Seller => {
                refuse(Reason::SeveralSellers)
            }
            OrderState::Processing { paid_at } => Ok(paid_at),
        }
    }

    /// A shipment is recorded. Where the carrier reports delivery already, both steps are, at the carrier's instant kept
    /// within payment and now, and no mail tells the buyer that the parcel is on its way.
    pub fn ship(self, new: NewShipment, shipper: Shipper, now: DateTime<Utc>) -> Outcome {
        let paid_at = self.check_shippable(shipper)?;
        let now = now.max(paid_at);
        let delivered = new
            .sighting
            .as_ref()
            .filter(|sighting| sighting.status == TrackingStatus::Delivered);
        let delivered_at = delivered.map(|sighting| sighting.at.unwrap_or(now).clamp(paid_at, now));
        let parcel = Parcel {
            id: new.id,
            carrier: new.carrier,
            tracking_number: new.tracking_number,
            tracking_status: new.sighting.map(|sighting| sighting.status),
            delivered_already: delivered_at.is_some(),
            buyer_notified: delivered_at.is_none() && self.mail_address().is_some(),
            created_at: now,
        };
        Ok(match delivered_at {
            None => {
                let state = OrderState::Shipped {
                    paid_at,
                    shipped_at: now,
                    parcel,
                };
                self.to(state, &[OrderEventKind::Shipped], now)
            }
            Some(at) => {
                let state = OrderState::Delivered {
                    paid_at,
                    shipped_at: at,
                    delivered_at: at,
                    parcel: Some(parcel),
                };
                self.to(state, &[OrderEventKind::Shipped, OrderEventKind::Delivered], now)
            }
        })
    }

    /// A delivery is recorded, from tracking or by the marketplace. Of a part that nobody has shipped both steps are.
    pub fn deliver(self, delivery: Delivery, now: DateTime<Utc>) -> Outcome {
        match self.state.clone() {
            OrderState::Cancelled { .. } => self.refuse(Command::Deliver, Reason::Cancelled),
            OrderState::Pending => self.refuse(Command::Deliver, Reason::Unpaid),
            OrderState::Delivered { .. } => Ok(self.unchanged()),
            OrderState::Processing { paid_at } => {
                let now = now.max(paid_at);
                let at = delivery.at.unwrap_or(now).clamp(paid_at, now);
                let state = OrderState::Delivered {
                    paid_at,
                    shipped_at: at,
                    delivered_at: at,
                    parcel: None,
                };
                Ok(self.to(state, &[OrderEventKind::Shipped, OrderEventKind::Delivered], now))
            }
            OrderState::Shipped {
                paid_at,
                shipped_at,
                parcel,
            } => {
                let now = now.max(shipped_at);
                let delivered_at = delivery.at.unwrap_or(now).clamp(shipped_at, now);
                let state = OrderState::Delivered {
                    paid_at,
                    shipped_at,
                    delivered_at,
                    parcel: Some(parcel),
                };
                Ok(self.to(state, &[OrderEventKind::Delivered], now))
            }
        }
    }

    /// The carrier says something of a parcel on its way. Only a delivery moves the order; nothing else is an error, and
    /// what arrives after the order has moved on changes nothing.
    pub fn sighted(self, sighting: &Sighting, now: DateTime<Utc>) -> Change<Self, OrderEvent> {
        let OrderState::Shipped {
            paid_at,
            shipped_at,
            mut parcel,
        } = self.state.clone()
        else {
            return self.unchanged();
        };
        let moved = parcel.tracking_status != Some(sighting.status);
        parcel.tracking_status = Some(sighting.status);
        if sighting.status == TrackingStatus::Delivered {
            let now = now.max(shipped_at);
            let delivered_at = sighting.at.unwrap_or(now).clamp(shipped_at, now);
            let state = OrderState::Delivered {
                paid_at,
                shipped_at,
                delivered_at,
                parcel: Some(parcel),
            };
            return self.to(state, &[OrderEventKind::Delivered], now);
        }
        if moved {
            self.to(
                OrderState::Shipped {
                    paid_at,
                    shipped_at,
                    parcel,
                },
                &[],
                now,
            )
        } else {
            self.unchanged()
        }
    }

    /// The buyer's personal data are erased, for good. Repeating is harmless.
    #[must_use]
    pub fn erase_buyer(self, now: DateTime<Utc>) -> Change<Self, OrderEvent> {
        if self.buyer.is_none() && self.shipping_address.is_none() {
            return self.unchanged();
        }
        // Before the payment nobody was shown any of it, so nothing that is returned changes.
        let updated_at = if self.shows_buyer() {
            now.max(self.updated_at)
        } else {
            self.updated_at
        };
        Change::of_existing(
            Self {
                buyer: None,
                shipping_address: None,
                updated_at,
                ..self
            },
            Vec::new(),
        )
    }

    fn to(
        self,
        state: OrderState,
        events: &[OrderEventKind],
        now: DateTime<Utc>,
    ) -> Change<Self, OrderEvent> {
        let updated_at = now.max(self.updated_at);
        let after = Self {
            state,
            updated_at,
            ..self
        };
        let events = events.iter().map(|kind| after.event(*kind)).collect();
        Change::of_existing(after, events)
    }

    fn unchanged(self) -> Change<Self, OrderEvent> {
        Change::of_existing(self, Vec::new())
    }

    fn event(&self, kind: OrderEventKind) -> OrderEvent {
        OrderEvent {
            kind,
            order: self.id,
            number: self.number.clone(),
        }
    }

    const fn refuse(&self, command: Command, reason: Reason) -> Outcome {
        Err(Refusal {
            status: self.status(),
            command,
            reason,
        })
    }
}

#[cfg(test)]
mod tests;
