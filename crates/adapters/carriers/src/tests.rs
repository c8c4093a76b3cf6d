//! No answer, however broken, makes a reader fall over.

use orders::TrackingNumber;
use proptest::{collection::vec, prelude::*};
use reqwest::StatusCode;
use secrecy::SecretString;
use serde_json::{Value, json};
use url::Url;

use crate::{
    DhlSettings, DpdSettings, InpostSettings, OauthSettings, PocztaPolskaSettings,
    api::Api,
    apis::{Dhl, Dpd, Fedex, Gls, Inpost, PocztaLogin, PocztaPolska, Ups},
    runtime::{ClientCredentials, TokenSource},
};

fn url() -> Url {
    Url::parse("https://carrier.example/").unwrap()
}

fn secret() -> SecretString {
    SecretString::from("secret")
}

fn oauth() -> OauthSettings {
    OauthSettings {
        base_url: url(),
        token_url: url(),
        client_id: secret(),
        client_secret: secret(),
    }
}

fn poczta() -> PocztaPolskaSettings {
    PocztaPolskaSettings {
        base_url: url(),
        token_url: url(),
        login: secret(),
        password: secret(),
    }
}

/// Each carrier with a body that it reads in full.
fn carriers() -> Vec<(Box<dyn Api>, Value)> {
    let dhl = DhlSettings {
        base_url: url(),
        api_key: secret(),
        service: None,
    };
    vec![
        (
            Box::new(
                Inpost::new(&InpostSettings {
                    base_url: url(),
                    token: None,
                })
                .unwrap(),
            ),
            json!({"status": "claimed", "error": "resource_not_found",
                "tracking_details": [{"status": "delivered", "datetime": "2026-01-06T12:00:00.000+01:00"}]}),
        ),
        (
            Box::new(Dhl::new(&dhl).unwrap()),
            json!({"title": "No result found", "shipments": [{"id": 1234, "returnFlag": true,
                "status": {"statusCode": "delivered", "timestamp": "2026-01-06T12:00:00"},
                "events": [{"statusCode": "transit", "timestamp": "2026-01-06T12:00:00Z"}]}]}),
        ),
        (
            Box::new(PocztaPolska::new(&poczta()).unwrap()),
            json!({"mailStatus": 0, "mailInfo": {"finished": true, "events": [
                {"code": "P_NDZ", "time": "2026-01-06T12:00:00", "canceled": false, "state": {"code": "ZW"}},
                {"code": "P_D", "time": "2026-01-07T12:00:00", "finished": true, "state": {"code": "DO"}}]}}),
        ),
        (
            Box::new(Gls::new(&oauth()).unwrap()),
            json!({"parcels": [{"requested": "1234", "errorCode": null, "status": "DELIVERED",
                "statusDateTime": "2026-01-06T12:00:00+0100", "events": [{"eventDateTime": ""}]}]}),
        ),
        (
            Box::new(Ups::new(&oauth(), chrono::DateTime::UNIX_EPOCH).unwrap()),
            json!({"response": {"errors": [{"code": "TV1002"}]}, "trackResponse": {"shipment": [{
                "warnings": [{"code": "none"}], "package": [{"trackingNumber": "1234",
                "currentStatus": {"statusCode": "011"}, "deliveryDate": [{"type": "DEL", "date": "20260106"}],
                "deliveryTime": [{"type": "DEL", "endTime": "120000"}],
                "activity": [{"gmtDate": "20260106", "gmtTime": "11:00:00", "status": {"statusCode": "011"}}]}]}]}}),
        ),
        (
            Box::new(Fedex::new(&oauth()).unwrap()),
            json!({"errors": [{"code": "x"}], "output": {"alerts": "some", "completeTrackResults": [{"trackResults": [{
                "latestStatusDetail": {"code": "DL", "derivedCode": "DL"}, "error": {"code": null},
                "scanEvents": [{"date": "2026-01-06T12:00:00+01:00", "eventType": "DL"}],
                "dateAndTimes": [{"type": "ACTUAL_DELIVERY", "dateTime": "2026-01-06T12:00:00+01:00"}]}]}]}}),
        ),
    ]
}

fn dpd() -> Dpd {
    let settings = DpdSettings {
        base_url: url(),
        channel: String::new(),
        login: secret(),
        password: secret(),
    };
    Dpd::new(&settings).unwrap()
}

const ENVELOPE: &str = "<S:Envelope xmlns:S=\"http://schemas.xmlsoap.org/soap/envelope/\"><S:Body>\
    <n:getEventsForWaybillV1Response xmlns:n=\"http://events.dpdinfoservices.dpd.com.pl/\"><return><eventsList>\
    <businessCode>190101</businessCode><eventTime>2026-01-06T12:00:00</eventTime></eventsList></return>\
    </n:getEventsForWaybillV1Response></S:Body></S:Envelope>";

const STATUSES: [StatusCode; 4] = [
    StatusCode::OK,
    StatusCode::BAD_REQUEST,
    StatusCode::NOT_FOUND,
    StatusCode::INTERNAL_SERVER_ERROR,
];

fn survives(api: &dyn Api, body: &[u8]) {
    let number = TrackingNumber::new("1234".to_owned()).unwrap();
    for status in STATUSES {
        let _ = api.read(&number, status, body);
    }
}

/// Every value that differs from `value` in one node, which has become something else.
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
fn a_wrong_node_anywhere_is_survived() {
    for (api, body) in carriers() {
        let number = TrackingNumber::new("1234".to_owned()).unwrap();
        let whole = api.read(&number, StatusCode::OK, body.to_string().as_bytes());
        assert!(whole.is_ok(), "{whole:?} {body}");
        for mutation in mutations(&body) {
            survives(&*api, mutation.to_string().as_bytes());
        }
    }
}

#[test]
fn a_cut_anywhere_is_survived_and_yields_nothing() {
    let number = TrackingNumber::new("1234".to_owned()).unwrap();
    let dpd: Box<dyn Api> = Box::new(dpd());
    let bodies = carriers().into_iter().map(|(api, body)| (api, body.to_string()));
    for (api, body) in bodies.chain([(dpd, ENVELOPE.to_owned())]) {
        for end in 0..body.len() {
            let cut = api.read(&number, StatusCode::OK, &body.as_bytes()[..end]);
            assert!(cut.is_err(), "{cut:?} {end} {body}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_bytes_are_survived(body in vec(any::<u8>(), 0..512)) {
        for (api, _) in carriers() {
            survives(&*api, &body);
        }
        survives(&dpd(), &body);
    }

    #[test]
    fn any_change_of_bytes_is_survived(at in 0..10_000_usize, byte in any::<u8>(), more in vec(any::<u8>(), 0..16)) {
        let bodies = carriers().into_iter().map(|(api, body)| (api, body.to_string().into_bytes()));
        let dpd: Box<dyn Api> = Box::new(dpd());
        for (api, mut body) in bodies.chain([(dpd, ENVELOPE.as_bytes().to_vec())]) {
            let at = at % body.len();
            body[at] = byte;
            survives(&*api, &body);
            body.splice(at..at, more.clone());
            survives(&*api, &body);
        }
    }

    #[test]
    fn any_token_is_survived(body in vec(any::<u8>(), 0..256), lasts in any::<i64>(), issued in any::<i64>()) {
        let now = chrono::DateTime::from_timestamp(1_700_000_000, 0).unwrap();
        let oauth = ClientCredentials::basic(orders::Carrier::Ups, &oauth()).unwrap();
        let login = PocztaLogin::new(&poczta()).unwrap();
        let odd = json!({"access_token": "t", "expires_in": lasts, "issued_at": issued.to_string()}).to_string();
        prop_assert!(oauth.read(odd.as_bytes(), now).is_some());
        let sources: [&dyn TokenSource; 2] = [&oauth, &login];
        for source in sources {
            let _ = source.read(&body, now);
            let _ = source.is_refusal(StatusCode::BAD_REQUEST, &body);
        }
    }
}
