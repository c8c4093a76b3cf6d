//! The columns that tell where a part of an order stands.

use chrono::{DateTime, Utc};
use orders::{OrderState, OrderStatus, Parcel, TrackingStatus};
use uuid::Uuid;

use super::words;

/// Instants of the states.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Instants {
    pub(super) paid_at: Option<DateTime<Utc>>,
    pub(super) shipped_at: Option<DateTime<Utc>>,
    pub(super) delivered_at: Option<DateTime<Utc>>,
    pub(super) cancelled_at: Option<DateTime<Utc>>,
}

impl Instants {
    pub(super) const fn of(state: &OrderState) -> Self {
        let (mut paid, mut shipped, mut delivered, mut cancelled) = (None, None, None, None);
        match state {
            OrderState::Pending => {}
            OrderState::Processing { paid_at } => paid = Some(*paid_at),
            OrderState::Shipped {
                paid_at, shipped_at, ..
            } => (paid, shipped) = (Some(*paid_at), Some(*shipped_at)),
            OrderState::Delivered {
                paid_at,
                shipped_at,
                delivered_at,
                ..
            } => {
                (paid, shipped, delivered) = (Some(*paid_at), Some(*shipped_at), Some(*delivered_at));
            }
            OrderState::Cancelled {
                paid_at,
                cancelled_at,
            } => (paid, cancelled) = (*paid_at, Some(*cancelled_at)),
        }
        Self {
            paid_at: paid,
            shipped_at: shipped,
            delivered_at: delivered,
            cancelled_at: cancelled,
        }
    }
}

/// The columns of a shipment: all of the first six are there, or none.
#[derive(Debug, Default)]
pub(super) struct ParcelColumns {
    pub(super) id: Option<Uuid>,
    pub(super) at: Option<DateTime<Utc>>,
    pub(super) delivered_already: Option<bool>,
    pub(super) buyer_notified: Option<bool>,
    pub(super) carrier: Option<String>,
    pub(super) tracking_number: Option<String>,
    pub(super) tracking_status: Option<String>,
}

impl ParcelColumns {
    /// The parcel, none where no column is there, or what is wrong.
    pub(super) fn read(self) -> Result<Option<Parcel>, String> {
        let (id, at, delivered_already, buyer_notified, carrier, number) = match (
            self.id,
            self.at,
            self.delivered_already,
            self.buyer_notified,
            self.carrier,
            self.tracking_number,
        ) {
            (None, None, None, None, None, None) if self.tracking_status.is_none() => return Ok(None),
            (Some(id), Some(at), Some(already), Some(notified), Some(carrier), Some(number)) => {
                (id, at, already, notified, carrier, number)
            }
            _ => return Err("half a shipment".to_owned()),
        };
        let (carrier, number) = (words::carrier(&carrier)?, words::tracking_number(number)?);
        let status = self
            .tracking_status
            .map(|word| TrackingStatus::parse(&word).ok_or_else(|| format!("tracking_status {word:?}")));
        Ok(Some(Parcel {
            id: id.into(),
            carrier,
            tracking_number: number,
            tracking_status: status.transpose()?,
            delivered_already,
            buyer_notified,
            created_at: at,
        }))
    }
}

/// The state, or what is wrong: each status has exactly its instants, and only what was sent has a shipment.
pub(super) fn read(status: &str, instants: Instants, parcel: Option<Parcel>) -> Result<OrderState, String> {
    let Instants {
        paid_at,
        shipped_at,
        delivered_at,
        cancelled_at,
    } = instants;
    let known = OrderStatus::parse(status).ok_or_else(|| format!("status {status:?}"))?;
    match (known, paid_at, shipped_at, delivered_at, cancelled_at, parcel) {
        (OrderStatus::Pending, None, None, None, None, None) => Ok(OrderState::Pending),
        (OrderStatus::Processing, Some(paid_at), None, None, None, None) => {
            Ok(OrderState::Processing { paid_at })
        }
        (OrderStatus::Shipped, Some(paid_at), Some(shipped_at), None, None, Some(parcel)) => {
            Ok(OrderState::Shipped {
                paid_at,
                shipped_at,
                parcel,
            })
        }
        (OrderStatus::Delivered, Some(paid_at), Some(shipped_at), Some(delivered_at), None, parcel) => {
            Ok(OrderState::Delivered {
                paid_at,
                shipped_at,
                delivered_at,
                parcel,
            })
        }
        (OrderStatus::Cancelled, paid_at, None, None, Some(cancelled_at), None) => {
            Ok(OrderState::Cancelled {
                paid_at,
                cancelled_at,
            })
        }
        _ => Err(format!("status {status:?} with the facts of another")),
    }
}
