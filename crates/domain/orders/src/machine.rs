//! The transitions of one seller's part of an order.
//!
//! Each transition is total: it returns the new part with its events, or a refusal that names the state and
//! the command. The marketplace's transitions are idempotent; a seller can ship only once.

use chrono::{DateTime, TimeDelta, Utc};
use kernel::Change;

use crate::{
    CORRECTIONS, Cause, Command, CommandRefusal, Correction, NewShipment, OrderEvent, OrderEventKind,
    OrderState, OrderStatus, Reason, SellerOrder, Shipment, ShipmentLocked, TrackingReport, TrackingStatus,
};

type TransitionResult = Result<Change<SellerOrder, OrderEvent>, CommandRefusal>;

impl SellerOrder {
    /// Creates the part when a buyer places the order.
    pub fn placed(self) -> Change<Self, OrderEvent> {
        let event = OrderEvent {
            kind: OrderEventKind::Created,
            cause: Cause::Marketplace,
        };
        Change::created(self, vec![event])
    }

    /// Books the payment: the buyer's data become visible.
    pub fn pay(self, now: DateTime<Utc>) -> TransitionResult {
        match self.state {
            OrderState::Pending => {
                let paid_at = now.max(self.placed_at);
                Ok(self.to(OrderState::Processing { paid_at }, Cause::Marketplace, now))
            }
            OrderState::Cancelled { paid_at: None, .. } => self.refuse(Command::Pay, Reason::Cancelled),
            _ => Ok(self.unchanged()),
        }
    }

    /// Cancels the part, on behalf of the buyer or the marketplace, before it is shipped.
    pub fn cancel(self, now: DateTime<Utc>) -> TransitionResult {
        match self.state {
            OrderState::Pending | OrderState::Processing { .. } => {
                let paid_at = self.paid_at();
                let cancelled_at = now.max(paid_at.unwrap_or(self.placed_at));
                let state = OrderState::Cancelled {
                    paid_at,
                    cancelled_at,
                };
                Ok(self.to(state, Cause::Marketplace, now))
            }
            OrderState::Cancelled { .. } => Ok(self.unchanged()),
            OrderState::Shipped { .. } | OrderState::Delivered { .. } => {
                self.refuse(Command::Cancel, Reason::AlreadyShipped)
            }
        }
    }

    /// The time of payment, if a shipment may be recorded: not cancelled, paid, not shipped, one seller,
    /// checked in this order. Only the marketplace ships an order of several sellers.
    pub fn check_shippable(&self, cause: Cause) -> Result<DateTime<Utc>, CommandRefusal> {
        let refuse = |reason| self.refuse(Command::Ship, reason);
        match self.state {
            OrderState::Cancelled { .. } => refuse(Reason::Cancelled),
            OrderState::Pending => refuse(Reason::Unpaid),
            OrderState::Shipped { .. } | OrderState::Delivered { .. } => refuse(Reason::AlreadyShipped),
            OrderState::Processing { .. } if self.several_sellers && cause == Cause::Seller => {
                refuse(Reason::SeveralSellers)
            }
            OrderState::Processing { paid_at } => Ok(paid_at),
        }
    }

    /// Records a shipment. If the carrier already reports delivery, records both steps: the delivery time is
    /// clamped between the payment and now, and no shipment mail is sent to the buyer.
    pub fn ship(self, new: NewShipment, cause: Cause, now: DateTime<Utc>) -> TransitionResult {
        let paid_at = self.check_shippable(cause)?;
        let now = now.max(paid_at);
        let delivered = new
            .tracking_report
            .as_ref()
            .filter(|tracking_report| tracking_report.status == TrackingStatus::Delivered);
        let delivered_at =
            delivered.map(|tracking_report| tracking_report.at.unwrap_or(now).clamp(paid_at, now));
        let shipment = Shipment {
            id: new.id,
            carrier: new.carrier,
            tracking_number: new.tracking_number,
            tracking_status: new.tracking_report.map(|tracking_report| tracking_report.status),
            delivered_already: delivered_at.is_some(),
            buyer_notified: delivered_at.is_none() && self.mail_address().is_some(),
            corrections_left: if cause == Cause::Seller { CORRECTIONS } else { 0 },
            created_at: now,
        };
        let state = match delivered_at {
            None => OrderState::Shipped {
                paid_at,
                shipped_at: now,
                shipment,
            },
            Some(at) => OrderState::Delivered {
                paid_at,
                shipped_at: at,
                delivered_at: at,
                shipment: Some(shipment),
            },
        };
        Ok(self.to(state, cause, now))
    }

    /// Corrects the shipment of a part in transit. The carrier's reports about the former parcel are forgotten.
    /// Values that the shipment already has are no correction, and never refused.
    pub fn correct(
        self,
        correction: Correction,
        now: DateTime<Utc>,
    ) -> Result<Change<Self, OrderEvent>, ShipmentLocked> {
        let known = self.shipment().ok_or(ShipmentLocked::NotInTransit)?;
        let carrier = correction.carrier.unwrap_or(known.carrier);
        let tracking_number = correction
            .tracking_number
            .unwrap_or_else(|| known.tracking_number.clone());
        if carrier == known.carrier && tracking_number == known.tracking_number {
            return Ok(self.unchanged());
        }
        let OrderState::Shipped {
            paid_at,
            shipped_at,
            shipment,
        } = self.state.clone()
        else {
            return Err(ShipmentLocked::NotInTransit);
        };
        let shipment = Shipment {
            carrier,
            tracking_number,
            tracking_status: None,
            corrections_left: shipment
                .corrections_left
                .checked_sub(1)
                .ok_or(ShipmentLocked::NoneLeft)?,
            ..shipment
        };
        let state = OrderState::Shipped {
            paid_at,
            shipped_at,
            shipment,
        };
        Ok(self.to(state, Cause::Seller, now))
    }

    /// Records a delivery on behalf of the marketplace. A part that is not shipped is recorded as shipped,
    /// too.
    pub fn deliver(self, now: DateTime<Utc>) -> TransitionResult {
        let (paid_at, shipped_at, shipment) = match self.state.clone() {
            OrderState::Cancelled { .. } => return self.refuse(Command::Deliver, Reason::Cancelled),
            OrderState::Pending => return self.refuse(Command::Deliver, Reason::Unpaid),
            OrderState::Delivered { .. } => return Ok(self.unchanged()),
            OrderState::Processing { paid_at } => (paid_at, None, None),
            OrderState::Shipped {
                paid_at,
                shipped_at,
                shipment,
            } => (paid_at, Some(shipped_at), Some(shipment)),
        };
        let now = now.max(shipped_at.unwrap_or(paid_at));
        let state = OrderState::Delivered {
            paid_at,
            shipped_at: shipped_at.unwrap_or(now),
            delivered_at: now,
            shipment,
        };
        Ok(self.to(state, Cause::Marketplace, now))
    }

    /// Applies a carrier's report about a shipment in transit. Only a delivery changes the state; other
    /// reports are not errors, and a report that arrives after the next transition changes nothing.
    pub fn apply_tracking(
        self,
        tracking_report: &TrackingReport,
        now: DateTime<Utc>,
    ) -> Change<Self, OrderEvent> {
        let OrderState::Shipped {
            paid_at,
            shipped_at,
            mut shipment,
        } = self.state.clone()
        else {
            return self.unchanged();
        };
        let moved = shipment.tracking_status != Some(tracking_report.status);
        shipment.tracking_status = Some(tracking_report.status);
        if tracking_report.status == TrackingStatus::Delivered {
            let now = now.max(shipped_at);
            let delivered_at = tracking_report.at.unwrap_or(now).clamp(shipped_at, now);
            let state = OrderState::Delivered {
                paid_at,
                shipped_at,
                delivered_at,
                shipment: Some(shipment),
            };
            return self.to(state, Cause::Carrier, now);
        }
        if !moved {
            return self.unchanged();
        }
        let state = OrderState::Shipped {
            paid_at,
            shipped_at,
            shipment,
        };
        self.to(state, Cause::Carrier, now)
    }

    /// Erases the buyer's personal data permanently. Idempotent.
    #[must_use]
    pub fn erase_buyer(self, now: DateTime<Utc>) -> Change<Self, OrderEvent> {
        if !self.holds_buyer() {
            return self.unchanged();
        }
        // Before the payment none of it was visible, so no returned field changes.
        let updated_at = if self.shows_buyer() {
            self.advanced(now)
        } else {
            self.updated_at
        };
        Change::of_existing(
            Self {
                buyer: None,
                shipping_address: None,
                delivery_point: None,
                invoice: None,
                updated_at,
                ..self
            },
            Vec::new(),
        )
    }

    /// The part in its next state, with the events of the transition. A shipment in transit that the seller
    /// changes is corrected; a carrier's report about it is no event.
    fn to(self, state: OrderState, cause: Cause, now: DateTime<Utc>) -> Change<Self, OrderEvent> {
        use OrderEventKind as Event;
        use OrderStatus::{Cancelled, Delivered, Processing, Shipped};
        let (before, updated_at) = (self.status(), self.advanced(now));
        let after = Self {
            state,
            updated_at,
            ..self
        };
        let kinds: &[Event] = match (before, after.status()) {
            (_, Processing) => &[Event::Paid],
            (_, Cancelled) => &[Event::Cancelled],
            (Processing, Shipped) => &[Event::Shipped],
            (Processing, Delivered) => &[Event::Shipped, Event::Delivered],
            (_, Delivered) => &[Event::Delivered],
            _ if cause == Cause::Seller => &[Event::ShipmentCorrected],
            _ => &[],
        };
        let events = kinds.iter().map(|&kind| OrderEvent { kind, cause });
        Change::of_existing(after, events.collect())
    }

    /// The next `updated_at`. It advances even if `now` is earlier: this transaction may have begun before
    /// the one that it waited for.
    fn advanced(&self, now: DateTime<Utc>) -> DateTime<Utc> {
        now.max(self.updated_at + TimeDelta::microseconds(1))
    }

    fn unchanged(self) -> Change<Self, OrderEvent> {
        Change::of_existing(self, Vec::new())
    }

    const fn refuse<T>(&self, command: Command, reason: Reason) -> Result<T, CommandRefusal> {
        Err(CommandRefusal {
            status: self.status(),
            command,
            reason,
        })
    }
}

#[cfg(test)]
pub(crate) mod tests;
