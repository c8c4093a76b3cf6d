//! Date-times: what is read is written in 27 characters that mean the same microsecond.

use chrono::{TimeDelta, Timelike, Utc};
use web::timestamps::{Timestamp, parse};

use crate::{Target, targets::texts};

pub(crate) const TARGET: Target = Target {
    name: "times",
    run,
    seeds: || {
        texts(&[
            "2026-01-31T12:00:00Z",
            "2026-01-31t12:00:00.123456789+02:00",
            "0000-01-01T00:00:00+23:59",
            "9999-12-31T23:59:60-23:59",
            "2026-02-29 12:00:00Z",
            "1969-12-31T23:59:59.9999999Z",
        ])
    },
    words: &[
        "+14:00",
        "-00:00",
        "T24:00:00",
        ".000000000000001",
        "Z",
        "T",
        ":60",
    ],
    grows: &[
        ("2026-01-31T12:00:00.", "0", "Z"),
        ("", "2026", ""),
        ("2026-01-31T12:00:00", " ", "Z"),
    ],
};

fn run(bytes: &[u8]) {
    let Some(at) = std::str::from_utf8(bytes).ok().and_then(parse) else {
        return;
    };
    let written = Timestamp::new(at);
    let text = written.as_str();
    assert!(
        text.len() == 27 && text.ends_with('Z') && text.is_ascii(),
        "{text}"
    );
    let again = parse(text).expect("what is written can be read");
    assert_eq!(Timestamp::new(again).as_str(), text);
    let first = chrono::DateTime::<Utc>::MIN_UTC.max("0000-01-01T00:00:00Z".parse().unwrap());
    let last = "9999-12-31T23:59:59.999999Z".parse().unwrap();
    // A leap second is written as the last microsecond before it.
    let leap = at.nanosecond() >= 1_000_000_000;
    let missing = at.clamp(first, last) - again;
    let most = if leap {
        TimeDelta::seconds(1)
    } else {
        TimeDelta::microseconds(1)
    };
    assert!(
        missing.abs() < most || missing == TimeDelta::zero(),
        "{at} {again}"
    );
}
