//! Parsing of the carriers' answers: the code tables, as the carriers document them, and sample answers.

use std::sync::LazyLock;

use adapter_carriers::{Carriers, DEADLINE};
use chrono::SecondsFormat;
use orders::{Carrier, Lookup};

use crate::fixtures::{delivered_body, parcel, samples};
use crate::world::{CARRIERS, clock, number, settings};

/// Clients that parse answers and send nothing.
static PARSERS: LazyLock<Carriers> = LazyLock::new(|| {
    let settings = CARRIERS.map(|carrier| settings(carrier, "http://127.0.0.1/", DEADLINE));
    let mut all = settings[0].clone();
    all.accounts = settings.into_iter().flat_map(|one| one.accounts).collect();
    Carriers::new(&all, clock()).unwrap()
});

/// The parsed answer: status, code and instant, "not found", or the reason for a failure.
fn read(carrier: &str, status: u16, body: &str) -> String {
    let carrier = Carrier::ALL
        .into_iter()
        .find(|one| one.as_str() == carrier)
        .unwrap();
    match PARSERS.parse_answer(carrier, &number(), status, body.as_bytes()) {
        Some(Lookup::Found(tracking_report)) => {
            let at = tracking_report
                .at
                .map(|at| at.to_rfc3339_opts(SecondsFormat::AutoSi, true));
            let at = at.as_deref().unwrap_or("undated");
            format!(
                "{} {} {at}",
                tracking_report.status.as_str(),
                tracking_report.raw_code
            )
        }
        Some(Lookup::NotFound) => "not found".to_owned(),
        Some(Lookup::Unavailable(reason)) => reason,
        None | Some(Lookup::NotConfigured) => panic!("{carrier:?} is not configured"),
    }
}

#[tokio::test]
async fn every_code_of_the_tables_has_its_status_and_others_are_unknown() {
    let mut count = 0;
    for line in include_str!("samples/codes.txt").lines().skip(1) {
        let mut words = line.split(' ');
        let (name, status) = (words.next().unwrap(), words.next().unwrap());
        let carrier = CARRIERS.into_iter().find(|one| one.as_str() == name).unwrap();
        for code in words {
            let code = code.replace('·', " ");
            let expected = format!("{status} {code} 2026-01-05T11:30:00Z");
            assert_eq!(read(name, 200, &parcel(carrier, &code)), expected, "{name}");
            count += 1;
        }
    }
    assert!(count > 150, "{count}");
    let long = read("gls", 200, &parcel(Carrier::Gls, &"Ż".repeat(100_000)));
    assert_eq!(long, format!("unknown {} 2026-01-05T11:30:00Z", "Ż".repeat(64)));
}

#[tokio::test]
async fn sample_answers_are_read() {
    for one in samples() {
        let read = read(one.carrier, one.status, one.body);
        assert_eq!(read, one.expected, "{}: {}", one.carrier, one.rule);
    }
}

#[tokio::test]
async fn answers_of_others_than_the_carrier_are_failures() {
    const PAGE: &str = "<!DOCTYPE html><html><body><h1>Maintenance</h1></body></html>";
    for carrier in CARRIERS {
        let whole = delivered_body(carrier);
        for (status, body, expected) in [
            (500, r#"{"error":"internal"}"#, "HTTP status 500"),
            (404, PAGE, "HTTP status 404"),
            (404, "{}", "HTTP status 404"),
            (403, "{}", "HTTP status 403"),
            (204, "", "HTTP status 204"),
            (500, &whole, "HTTP status 500"),
            (200, PAGE, "unreadable answer"),
            (200, "", "unreadable answer"),
            (200, "{}", "unreadable answer"),
            (200, "<x/>", "unreadable answer"),
            (200, &whole[..whole.len() / 2], "unreadable answer"),
        ] {
            let read = read(carrier.as_str(), status, body);
            assert!(read.starts_with(expected), "{carrier:?} {status} {body}: {read}");
        }
    }
}
