//! Malformed answers are rejected without a panic. `crates/fuzz` tries arbitrary bytes.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use kernel::Clock;
use orders::{
    Carrier::{self, Dhl, Dpd, Fedex, Gls, Inpost, PocztaPolska, Ups},
    Lookup, TrackingNumber,
};
use proptest::{collection::vec, prelude::*};
use reqwest::StatusCode;
use secrecy::SecretString;
use serde_json::{Value, json};
use url::Url;

use crate::{
    CarrierSettings, Carriers, DhlSettings, DpdSettings, InpostSettings, OauthSettings, PocztaPolskaSettings,
    apis::poczta_polska::PocztaLogin, oauth::ClientCredentials, tokens::TokenSource,
};

struct Stopped;

impl Clock for Stopped {
    fn now(&self) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH
    }
}

fn settings() -> CarrierSettings {
    let base_url = Url::parse("https://carrier.example/").unwrap();
    let token_url = base_url.clone();
    let secret = || SecretString::from("secret");
    let oauth = || OauthSettings {
        base_url: base_url.clone(),
        token_url: token_url.clone(),
        client_id: secret(),
        client_secret: secret(),
    };
    CarrierSettings {
        inpost: Some(InpostSettings {
            base_url: base_url.clone(),
            token: None,
        }),
        dhl: Some(DhlSettings {
            base_url: base_url.clone(),
            api_key: secret(),
            service: None,
        }),
        poczta_polska: Some(PocztaPolskaSettings {
            base_url: base_url.clone(),
            token_url: token_url.clone(),
            login: secret(),
            password: secret(),
        }),
        dpd: Some(DpdSettings {
            base_url: base_url.clone(),
            channel: String::new(),
            login: secret(),
            password: secret(),
        }),
        gls: Some(oauth()),
        ups: Some(oauth()),
        fedex: Some(oauth()),
        ..CarrierSettings::none("tests/1.0")
    }
}

fn read(carriers: &Carriers, carrier: Carrier, status: u16, body: &[u8]) -> Lookup {
    let number = TrackingNumber::new("1234".to_owned()).unwrap();
    carriers.understand(carrier, &number, status, body).unwrap()
}

/// A body of each carrier that is read in full.
fn bodies() -> [(Carrier, Value); 6] {
    [
        (
            Inpost,
            json!({"status": "claimed", "error": "resource_not_found",
                "tracking_details": [{"status": "delivered", "datetime": "2026-01-06T12:00:00.000+01:00"}]}),
        ),
        (
            Dhl,
            json!({"title": "No result found", "shipments": [{"id": 1234, "returnFlag": true,
                "status": {"statusCode": "delivered", "timestamp": "2026-01-06T12:00:00"},
                "events": [{"statusCode": "transit", "timestamp": "2026-01-06T12:00:00Z"}]}]}),
        ),
        (
            PocztaPolska,
            json!({"mailStatus": 0, "mailInfo": {"finished": true, "events": [
                {"code": "P_NDZ", "time": "2026-01-06T12:00:00", "canceled": false, "state": {"code": "ZW"}},
                {"code": "P_D", "time": "2026-01-07T12:00:00", "finished": true, "state": {"code": "DO"}}]}}),
        ),
        (
            Gls,
            json!({"parcels": [{"requested": "1234", "errorCode": null, "status": "DELIVERED",
                "statusDateTime": "2026-01-06T12:00:00+0100", "events": [{"eventDateTime": ""}]}]}),
        ),
        (
            Ups,
            json!({"response": {"errors": [{"code": "TV1002"}]}, "trackResponse": {"shipment": [{
                "warnings": [{"code": "none"}], "package": [{"trackingNumber": "1234",
                "currentStatus": {"statusCode": "011"}, "deliveryDate": [{"type": "DEL", "date": "20260106"}],
                "deliveryTime": [{"type": "DEL", "endTime": "120000"}],
                "activity": [{"gmtDate": "20260106", "gmtTime": "11:00:00", "status": {"statusCode": "011"}}]}]}]}}),
        ),
        (
            Fedex,
            json!({"errors": [{"code": "x"}], "output": {"alerts": "some", "completeTrackResults": [{"trackResults": [{
                "latestStatusDetail": {"code": "DL", "derivedCode": "DL"}, "error": {"code": null},
                "scanEvents": [{"date": "2026-01-06T12:00:00+01:00", "eventType": "DL"}],
                "dateAndTimes": [{"type": "ACTUAL_DELIVERY", "dateTime": "2026-01-06T12:00:00+01:00"}]}]}]}}),
        ),
    ]
}

const ENVELOPE: &str = "<S:Envelope xmlns:S=\"http://schemas.xmlsoap.org/soap/envelope/\"><S:Body>\
    <n:getEventsForWaybillV1Response xmlns:n=\"http://events.dpdinfoservices.dpd.com.pl/\"><return><eventsList>\
    <businessCode>190101</businessCode><eventTime>2026-01-06T12:00:00</eventTime></eventsList></return>\
    </n:getEventsForWaybillV1Response></S:Body></S:Envelope>";

/// Every value that differs from `value` in one node.
fn mutations(value: &Value) -> Vec<Value> {
    let others = [
        json!(null),
        json!(-1e300),
        json!("ż\u{0}"),
        json!(""),
        json!([]),
        json!({}),
        json!([[{}]]),
    ];
    let mut all = others.to_vec();
    match value {
        Value::Object(entries) => {
            for (key, child) in entries {
                for changed in mutations(child) {
                    let mut entries = entries.clone();
                    entries.insert(key.clone(), changed);
                    all.push(Value::Object(entries));
                }
                let mut entries = entries.clone();
                entries.remove(key);
                all.push(Value::Object(entries));
            }
        }
        Value::Array(elements) => {
            for (n, child) in elements.iter().enumerate() {
                for changed in mutations(child) {
                    let mut elements = elements.clone();
                    elements[n] = changed;
                    all.push(Value::Array(elements));
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    all
}

#[test]
fn a_wrong_node_anywhere_does_not_panic() {
    let carriers = Carriers::new(&settings(), Arc::new(Stopped)).unwrap();
    for (carrier, body) in bodies() {
        let whole = read(&carriers, carrier, 200, body.to_string().as_bytes());
        assert!(matches!(whole, Lookup::Found(_)), "{whole:?} {body}");
        for mutation in mutations(&body) {
            for status in [200, 400, 404, 500] {
                read(&carriers, carrier, status, mutation.to_string().as_bytes());
            }
        }
    }
}

#[test]
fn a_truncated_answer_is_unavailable() {
    let carriers = Carriers::new(&settings(), Arc::new(Stopped)).unwrap();
    let bodies = bodies().map(|(carrier, body)| (carrier, body.to_string()));
    for (carrier, body) in bodies.into_iter().chain([(Dpd, ENVELOPE.to_owned())]) {
        for end in 0..body.len() {
            let cut = read(&carriers, carrier, 200, &body.as_bytes()[..end]);
            assert!(matches!(cut, Lookup::Unavailable(_)), "{cut:?} {end} {body}");
        }
    }
}

proptest! {
    #[test]
    fn no_token_answer_panics(body in vec(any::<u8>(), 0..256), lasts in any::<i64>(), issued in any::<i64>()) {
        let now = DateTime::from_timestamp(1_700_000_000, 0).unwrap();
        let odd = json!({"access_token": "t", "expires_in": lasts, "issued_at": issued.to_string()}).to_string();
        prop_assert!(ClientCredentials.read(odd.as_bytes(), now).is_some());
        let sources: [&dyn TokenSource; 2] = [&ClientCredentials, &PocztaLogin];
        for source in sources {
            let _ = source.read(&body, now);
            let _ = source.is_rejection(StatusCode::BAD_REQUEST, &body);
        }
    }
}
