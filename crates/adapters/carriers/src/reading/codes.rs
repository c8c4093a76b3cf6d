//! Carriers' code tables as data.

use orders::TrackingStatus;

/// What a carrier's codes mean. A code is matched exactly, letter case included; `*` at the end of an entry stands for any
/// rest, at its beginning for any start. An entry without `*` goes before one with it, else the first entry counts.
pub(crate) type CodeTable = &'static [(TrackingStatus, &'static [&'static str])];

/// What a code means; none when it is not in the table.
pub(crate) fn meaning(table: CodeTable, code: &str) -> Option<TrackingStatus> {
    let find = |matches: fn(&str, &str) -> bool| {
        table
            .iter()
            .find(|(_, entries)| entries.iter().any(|entry| matches(entry, code)))
            .map(|(status, _)| *status)
    };
    find(|entry, code| entry == code).or_else(|| find(matches_openly))
}

fn matches_openly(entry: &str, code: &str) -> bool {
    match (entry.strip_suffix('*'), entry.strip_prefix('*')) {
        (Some(start), _) => code.starts_with(start),
        (None, Some(end)) => code.ends_with(end),
        (None, None) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: CodeTable = &[
        (TrackingStatus::InTransit, &["sent_*", "0401*"]),
        (TrackingStatus::Exception, &["*_expired", "sent_wrong"]),
    ];

    #[test]
    fn an_exact_entry_goes_before_an_open_one() {
        assert_eq!(meaning(TABLE, "sent_off"), Some(TrackingStatus::InTransit));
        assert_eq!(meaning(TABLE, "sent_wrong"), Some(TrackingStatus::Exception));
        assert_eq!(meaning(TABLE, "pickup_expired"), Some(TrackingStatus::Exception));
        assert_eq!(meaning(TABLE, "040199"), Some(TrackingStatus::InTransit));
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
            assert_eq!(meaning(TABLE, code), None, "{code}");
        }
    }
}
