//! Maps a carrier's codes to one status: by a table, and by the events of a parcel's history.

use orders::TrackingStatus::{
    self, Delivered, Exception, InTransit, OutForDelivery, ReadyForPickup, Registered, Returned, Returning,
};

use crate::apis::Reading;

/// A carrier's codes by status. Matching is exact and case-sensitive. `*` at the end of an entry matches any
/// suffix, at its start any prefix. An exact entry takes precedence over one with `*`; otherwise the first
/// entry wins.
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

/// Derives a parcel's state from its events, oldest first, for carriers that report no state. A delivery to
/// the buyer is final. After the parcel has turned back, a delivery event means a delivery to the sender.
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
        (InTransit, &["sent_*", "0401*"]),
        (Exception, &["*_expired", "sent_wrong"]),
    ];

    #[test]
    fn an_exact_entry_wins_over_a_wildcard_and_nothing_else_matches() {
        for (code, status) in [
            ("sent_off", Some(InTransit)),
            ("sent_wrong", Some(Exception)),
            ("pickup_expired", Some(Exception)),
            ("040199", Some(InTransit)),
        ] {
            assert_eq!(status_of(TABLE, code), status, "{code}");
        }
        for code in [
            "",
            "sent",
            "Sent_off",
            " sent_off",
            "40199",
            "expired",
            "*_expired*",
        ] {
            assert_eq!(status_of(TABLE, code), None, "{code}");
        }
    }

    /// The status of a history; each event is later than those before it.
    fn of(statuses: &[TrackingStatus]) -> Option<TrackingStatus> {
        let mut events: Vec<_> = statuses
            .iter()
            .zip(1..)
            .map(|(status, second)| Reading {
                code: status.as_str().to_owned(),
                status: (*status != Unknown).then_some(*status),
                at: DateTime::from_timestamp(second, 0),
            })
            .collect();
        events.reverse();
        of_history(events)?.status
    }

    #[test]
    fn the_last_event_decides_unless_the_parcel_was_delivered_and_the_turn_makes_it_a_return() {
        let table: [(&[TrackingStatus], Option<TrackingStatus>); 9] = [
            (&[], None),
            (&[InTransit, OutForDelivery], Some(OutForDelivery)),
            (&[InTransit, Delivered, InTransit], Some(Delivered)),
            (&[Delivered, Returning, Delivered], Some(Delivered)),
            (&[InTransit, Unknown], None),
            (&[InTransit, Returning], Some(Returning)),
            (&[InTransit, Returning, OutForDelivery], Some(Returning)),
            (&[InTransit, Returning, InTransit, Delivered], Some(Returned)),
            (&[InTransit, Returned], Some(Returned)),
        ];
        for (statuses, status) in table {
            assert_eq!(of(statuses), status, "{statuses:?}");
        }
    }
}
