//! A parcel's state from the events of its way, for carriers that tell no state of their own.

use chrono::{DateTime, Utc};
use orders::TrackingStatus::{
    self, Delivered, Exception, InTransit, OutForDelivery, ReadyForPickup, Registered,
};

use crate::api::Reading;

/// One event on a parcel's way.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub(crate) code: String,
    pub(crate) status: Option<TrackingStatus>,
    pub(crate) at: Option<DateTime<Utc>>,
}

/// Where the parcel is, given its events as listed, the oldest first. A delivery to the buyer is final. Once the parcel has
/// turned round, its way is the way back, and what the carrier calls a delivery is one to the sender.
pub(crate) fn outcome(mut events: Vec<Event>) -> Option<Reading> {
    if events.iter().all(|event| event.at.is_some()) {
        events.sort_by_key(|event| event.at);
    }
    let turned = events.iter().position(|event| is_turn(event.status));
    let delivered = events.iter().position(|event| event.status == Some(Delivered));
    let last = events.len().checked_sub(1)?;
    let deciding = match (delivered, turned) {
        (Some(delivered), Some(turned)) if delivered < turned => delivered,
        (Some(delivered), None) => delivered,
        _ => last,
    };
    let status_on_the_way = |status| {
        if turned.is_some_and(|turned| turned <= deciding) {
            back(status)
        } else {
            status
        }
    };
    let event = events.into_iter().nth(deciding)?;
    Some(Reading {
        status: event.status.map(status_on_the_way),
        code: event.code,
        at: event.at,
    })
}

fn is_turn(status: Option<TrackingStatus>) -> bool {
    matches!(status, Some(TrackingStatus::Returning | TrackingStatus::Returned))
}

fn back(status: TrackingStatus) -> TrackingStatus {
    match status {
        Delivered => TrackingStatus::Returned,
        Registered | InTransit | OutForDelivery | ReadyForPickup | Exception => TrackingStatus::Returning,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use TrackingStatus::{Returned, Returning, Unknown};

    fn ends(statuses: &[TrackingStatus]) -> Option<TrackingStatus> {
        let events = statuses.iter().map(|status| Event {
            code: status.as_str().to_owned(),
            status: (*status != Unknown).then_some(*status),
            at: None,
        });
        outcome(events.collect()).and_then(|reading| reading.status)
    }

    #[test]
    fn the_last_event_tells_unless_the_parcel_was_delivered() {
        assert_eq!(ends(&[]), None);
        assert_eq!(ends(&[InTransit, OutForDelivery]), Some(OutForDelivery));
        assert_eq!(ends(&[InTransit, Delivered, InTransit]), Some(Delivered));
        assert_eq!(ends(&[Delivered, Returning, Delivered]), Some(Delivered));
        assert_eq!(ends(&[InTransit, Unknown]), None);
    }

    #[test]
    fn after_the_turn_a_delivery_is_one_to_the_sender() {
        assert_eq!(ends(&[InTransit, Returning]), Some(Returning));
        assert_eq!(ends(&[InTransit, Returning, OutForDelivery]), Some(Returning));
        assert_eq!(
            ends(&[InTransit, Returning, InTransit, Delivered]),
            Some(Returned)
        );
        assert_eq!(ends(&[InTransit, Returned]), Some(Returned));
    }

    #[test]
    fn events_are_put_in_order_by_their_times() {
        let event = |status: TrackingStatus, second| Event {
            code: status.as_str().to_owned(),
            status: Some(status),
            at: DateTime::from_timestamp(second, 0),
        };
        let events = vec![
            event(OutForDelivery, 3),
            event(Registered, 1),
            event(InTransit, 2),
        ];
        assert_eq!(
            outcome(events).map(|reading| reading.code).as_deref(),
            Some("out_for_delivery")
        );
    }
}
