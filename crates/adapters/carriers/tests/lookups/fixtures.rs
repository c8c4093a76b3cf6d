//! Handwritten answers in the carriers' formats; `samples/` has their bodies.

use orders::Carrier;
use serde_json::json;

use crate::world::{NUMBER, Reply, reply};

/// A rule, with the status and the body of an answer, and the parsed result.
pub(crate) struct Sample {
    pub(crate) carrier: &'static str,
    pub(crate) rule: &'static str,
    pub(crate) status: u16,
    pub(crate) body: &'static str,
    pub(crate) expected: &'static str,
}

pub(crate) fn samples() -> impl Iterator<Item = Sample> {
    include_str!("samples/answers.txt")
        .trim_end()
        .split("\n\n")
        .map(|lines| {
            let [title, answer, expected] = lines.split('\n').collect::<Vec<_>>().try_into().unwrap();
            let (carrier, rule) = title.split_once(": ").unwrap();
            let (status, body) = answer.split_once(' ').unwrap();
            Sample {
                carrier,
                rule,
                status: status.parse().unwrap(),
                body,
                expected,
            }
        })
}

/// A parcel with this code since 5 January 2026, 11:30 UTC.
pub(crate) fn parcel(carrier: Carrier, code: &str) -> String {
    let template = match carrier {
        Carrier::Inpost => include_str!("samples/inpost.json"),
        Carrier::Dhl => include_str!("samples/dhl.json"),
        Carrier::PocztaPolska => include_str!("samples/poczta_polska.json"),
        Carrier::Dpd => include_str!("samples/dpd.xml"),
        Carrier::Gls => include_str!("samples/gls.json"),
        Carrier::Ups => include_str!("samples/ups.json"),
        Carrier::Fedex => include_str!("samples/fedex.json"),
        Carrier::Other => panic!("no carrier"),
    };
    let code = code.replace('\u{1b}', "\\u001b");
    template.replace("NUMBER", NUMBER).replace("CODE", &code)
}

/// The code of a delivered parcel.
fn delivered_code(carrier: Carrier) -> &'static str {
    match carrier {
        Carrier::Inpost | Carrier::Dhl => "delivered",
        Carrier::PocztaPolska => "P_D",
        Carrier::Dpd => "190101",
        Carrier::Gls => "DELIVERED",
        Carrier::Ups => "011",
        Carrier::Fedex => "DL",
        Carrier::Other => panic!("no carrier"),
    }
}

pub(crate) fn delivered_body(carrier: Carrier) -> String {
    parcel(carrier, delivered_code(carrier))
}

pub(crate) fn delivered(carrier: Carrier) -> Reply {
    reply(200, delivered_body(carrier))
}

/// The carrier's answer for an unknown number.
pub(crate) fn not_found(carrier: Carrier) -> Reply {
    let mut all = samples().filter(|one| one.carrier == carrier.as_str());
    let answer = all.find(|one| one.expected == "not found").unwrap();
    reply(answer.status, answer.body)
}

/// The `n`th token, valid for an hour if the carrier states it.
pub(crate) fn token(carrier: Carrier, n: usize) -> Reply {
    match carrier {
        Carrier::PocztaPolska => reply(200, format!("access3token-{n}")),
        _ => token_for(n, 3_600),
    }
}

/// An OAuth token that is valid for `seconds`.
pub(crate) fn token_for(n: usize, seconds: u32) -> Reply {
    let token = format!("access3token-{n}");
    let body = json!({"access_token": token, "token_type": "Bearer", "expires_in": seconds});
    reply(200, body.to_string())
}
