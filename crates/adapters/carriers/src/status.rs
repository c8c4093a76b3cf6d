//! Maps a carrier's codes to one status: by a table, and by the events of a parcel's history.

use orders::TrackingStatus::{
    self, Delivered, Exception, InTransit, OutForDelivery, ReadyForPickup, Registered, Returned, Returning,
};

use crate::apis::Reading;

/// A carrier's codes by status. Matching is exact and case-sensitive. `*` at the end of an entry matches any suffix, at its start
/// any prefix. An exact entry takes precedence over one with `*`; otherwise the first entry wins.
pub(crate) type CodeTable = &'static [(TrackingStatus, &'static [&'static str])];

/// The status of a code; none if the table does not contain it.
pub(crate) fn status_of(table: CodeTable, code: &str) -> Option<TrackingStatus> {
    let find = |matches: fn(&str, &str) -> bool| {
        table
            .iter()
            .find(|(_, entries)| entries.iter().any(|entry| matches(entry, code)))
            .map(|(status, _)| *status)
    };
    find(|entry, code| entry == code).or_else(|| find(matches_wildcard))
}

fn matches_wildcard(entry: &str, code: &str) -> bool {
    match (entry.strip_suffix('*'), entry.strip_prefix('*')) {
        (Some(prefix), _) => code.starts_with(prefix),
        (None, Some(suffix)) => code.ends_with(suffix),
        (None, None) => false,
    }
}

/// Derives a parcel's state from its events, oldest first, for carriers that report no state. A delivery to the buyer is
/// final. After the parcel has turned back, a delivery event means a delivery to the sender.
pub(crate) fn of_history(mut events: Vec<Reading>) -> Option<Reading> {
    if events.iter().all(|event| event.at.is_some()) {
        events.sort_by_key(|event| event.at);
    }
    let first = |statuses: &[TrackingStatus]| {
        let is_one = |event: &Reading| event.status.is_some_and(|status| statuses.contains(&status));
        events.iter().position(is_one)
    };
    let (delivered, returned) = (first(&[Delivered]), first(&[Returning, Returned]));
    let deciding = match delivered {
        Some(delivered) if returned.is_none_or(|returned| delivered < returned) => delivered,
        _ => events.len().checked_sub(1)?,
    };
    let is_return = returned.is_some_and(|returned| returned <= deciding);
    let mut reading = events.into_iter().nth(deciding)?;
    if is_return {
        reading.status = reading.status.map(|status| match status {
            Delivered => Returned,
            Registered | InTransit | OutForDelivery | ReadyForPickup | Exception => Returning,
            other => other,
        });
    }
    Some(reading)
}

#[cfg(test)]
mod tests {
    use TrackingStatus::Unknown;
    use chrono::DateTime;

    use super::*;

    const TABLE: CodeTable = &[
        (TrackingStatus::InTransit, &["sent_*", "0401*"]),
        (TrackingStatus::Exception, &["*_expired", "sent_wrong"]),
    ];

    #[test]
    fn an_exact_entry_wins_over_a_wildcard() {
        assert_eq!(status_of(TABLE, "sent_off"), Some(TrackingStatus::InTransit));
        assert_eq!(status_of(TABLE, "sent_wrong"), Some(TrackingStatus::Exception));
        assert_eq!(
            status_of(TABLE, "pickup_expired"),
            Some(TrackingStatus::Exception)
        );
        assert_eq!(status_of(TABLE, "040199"), Some(TrackingStatus::InTransit));
    }

    #[test]
    fn nothing_else_matches() {
        for code in [
            "",
            "sent",
            "Sent_off",
            "SENT_OFF",
            " sent_off",
            "40199",
            "expired",
            "*_expired*",
        ] {
            assert_eq!(status_of(TABLE, code), None, "{code}");
        }
    }

    fn ends(statuses: &[TrackingStatus]) -> Option<TrackingStatus> {
        let events = statuses.iter().map(|status| Reading {
            code: status.as_str().to_owned(),
            status: (*status != Unknown).then_some(*status),
            at: None,
        });
        of_history(events.collect()).and_then(|reading| reading.status)
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
        let event = |status: TrackingStatus, second| Reading {
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
            of_history(events).map(|reading| reading.code).as_deref(),
            Some("out_for_delivery")
        );
    }
}
