//! What carriers answer: whatever it is, it is understood, or not, in the same way each time, and in few words.

use std::sync::{Arc, OnceLock};

use adapter_carriers::{
    CarrierSettings, Carriers, DhlSettings, DpdSettings, InpostSettings, OauthSettings, PocztaPolskaSettings,
};
use adapter_sealing::SystemClock;
use orders::{Carrier, Lookup, TrackingNumber};
use secrecy::SecretString;
use url::Url;

use crate::Target;
use crate::held::is_printable;

/// How long a carrier's code may be, in characters.
const LONGEST_CODE: usize = 64;

const JSON_GROWS: &[(&str, &str, &str)] = &[
    ("200 {\"a\":[", "{\"status\":\"x\"},", "0]}"),
    ("200 ", "{\"a\":", ""),
    (
        "200 {\"events\":[",
        "{\"code\":\"P_D\",\"time\":\"2026-01-05T12:30:00\"},",
        "0]}",
    ),
];

const WORDS: &[&str] = &[
    "404 ",
    "400 ",
    "500 ",
    "\"errors\":",
    "\"code\":",
    "\"delivered\"",
    "\"2026-10-25T02:30:00\"",
    "\"-262000-01-01T00:00:00\"",
    "\"2026-03-29 02:30\"",
    "[]",
    "{}",
    "true",
];

macro_rules! target {
    ($constant:ident, $name:literal, $carrier:ident, $grows:expr, [$($seed:expr),+ $(,)?]) => {
        pub(crate) const $constant: Target = Target {
            name: $name,
            run: |bytes| run(Carrier::$carrier, bytes),
            seeds: || vec![$($seed.as_bytes().to_vec()),+],
            words: WORDS,
            grows: $grows,
        };
    };
}

target!(
    INPOST,
    "inpost",
    Inpost,
    JSON_GROWS,
    [
        r#"200 {"tracking_number":"620000000000000000000001","status":"delivered","tracking_details":[{"status":"delivered","origin_status":"X","agency":null,"datetime":"2026-01-05T12:30:00.000+01:00"},{"status":"confirmed","datetime":"2026-01-02T10:00:00.000+01:00"}],"updated_at":"2026-01-05T12:30:00.000+01:00"}"#,
        r#"404 {"status":404,"error":"resource_not_found","message":"Not found.","details":{}}"#,
    ]
);

target!(
    DHL,
    "dhl",
    Dhl,
    JSON_GROWS,
    [
        r#"200 {"shipments":[{"id":"620000000000000000000001","service":"parcel-pl","status":{"timestamp":"2026-01-05T11:30:00Z","statusCode":"delivered"},"returnFlag":true,"events":[{"timestamp":"2026-01-05T11:30:00Z","statusCode":"transit"}]}]}"#,
        r#"404 {"title":"No result found","status":404,"detail":"No shipment with given tracking number found."}"#,
    ]
);

target!(
    POCZTA_POLSKA,
    "poczta_polska",
    PocztaPolska,
    JSON_GROWS,
    [
        r#"200 {"number":"620000000000000000000001","mailStatus":0,"mailInfo":{"finished":false,"events":[{"code":"P_REJ_KN1","time":"2026-01-02T09:00:00","finished":false,"canceled":false,"state":{"code":"RE"}},{"code":"P_D","time":"2026-01-05T12:30:00","canceled":false,"state":{"code":"ZW"}}]}}"#,
        r#"200 {"number":"620000000000000000000001","mailStatus":-1}"#,
    ]
);

target!(
    DPD,
    "dpd",
    Dpd,
    &[
        (
            "200 <getEventsForWaybillV1Response>",
            "<eventsList><businessCode>190101</businessCode></eventsList>",
            "</getEventsForWaybillV1Response>"
        ),
        ("200 ", "<a>", ""),
        ("200 <a b='", "&amp;", "'/>"),
        ("200 <a ", "b#='' ", "/>"),
        ("200 <a ", "xmlns:a#='x' ", "/>"),
        ("200 ", "<a xmlns:b#='x'>", ""),
    ],
    [
        r#"200 <?xml version="1.0"?><S:Envelope xmlns:S="http://schemas.xmlsoap.org/soap/envelope/"><S:Body><ns2:getEventsForWaybillV1Response xmlns:ns2="http://events.dpdinfoservices.dpd.com.pl/"><return><eventsList><businessCode>190101</businessCode><eventTime>2026-01-05T12:30:00</eventTime></eventsList><eventsList><businessCode>030103</businessCode><eventTime>2026-01-02T09:00:00</eventTime></eventsList></return></ns2:getEventsForWaybillV1Response></S:Body></S:Envelope>"#,
        r#"500 <S:Envelope xmlns:S="http://schemas.xmlsoap.org/soap/envelope/"><S:Body><S:Fault><faultcode>S:Server</faultcode><faultstring>Access denied &#38; <![CDATA[so]]></faultstring></S:Fault></S:Body></S:Envelope>"#,
    ]
);

target!(
    GLS,
    "gls",
    Gls,
    JSON_GROWS,
    [
        r#"200 {"parcels":[{"requested":"620000000000000000000001","unitno":"12345678901","status":"DELIVERED","statusDateTime":"2026-01-05T12:30:00+0100","events":[{"code":"2.0","city":"Wrocław","eventDateTime":"2026-01-05T12:30:00+0100"}]}]}"#,
        r#"200 {"parcels":[{"requested":"620000000000000000000001","errorCode":"E_404_01","errorMessage":"no data found for search"}]}"#,
    ]
);

target!(
    UPS,
    "ups",
    Ups,
    JSON_GROWS,
    [
        r#"200 {"trackResponse":{"shipment":[{"inquiryNumber":"620000000000000000000001","package":[{"trackingNumber":"620000000000000000000001","currentStatus":{"code":"011","statusCode":"011"},"deliveryDate":[{"type":"DEL","date":"20260105"}],"deliveryTime":[{"type":"DEL","endTime":"123000"}],"activity":[{"gmtDate":"20260105","gmtTime":"11:30:00","status":{"type":"D","statusCode":"011"}}]}]}]}}"#,
        r#"404 {"response":{"errors":[{"code":"TRK404","message":"No tracking information available"}]}}"#,
        r#"400 {"response":{"errors":[{"code":"TV1002"}]}}"#,
    ]
);

target!(
    FEDEX,
    "fedex",
    Fedex,
    JSON_GROWS,
    [
        r#"200 {"output":{"completeTrackResults":[{"trackingNumber":"620000000000000000000001","trackResults":[{"latestStatusDetail":{"code":"DL","derivedCode":"DL"},"dateAndTimes":[{"type":"ACTUAL_DELIVERY","dateTime":"2026-01-05T12:30:00+01:00"}],"scanEvents":[{"date":"2026-01-05T12:30:00+01:00","eventType":"DL"}]}]}]}}"#,
        r#"200 {"output":{"completeTrackResults":[{"trackResults":[{"error":{"code":"TRACKING.TRACKINGNUMBER.NOTFOUND"}}]}]}}"#,
    ]
);

/// All seven, set up and never asked.
fn carriers() -> &'static Carriers {
    static CARRIERS: OnceLock<Carriers> = OnceLock::new();
    CARRIERS.get_or_init(|| {
        let url = || Url::parse("http://127.0.0.1:9/").expect("a URL");
        let secret = || SecretString::from("secret");
        let oauth = || OauthSettings {
            base_url: url(),
            token_url: url(),
            client_id: secret(),
            client_secret: secret(),
        };
        let settings = CarrierSettings {
            inpost: Some(InpostSettings {
                base_url: url(),
                token: None,
            }),
            dhl: Some(DhlSettings {
                base_url: url(),
                api_key: secret(),
                service: None,
            }),
            poczta_polska: Some(PocztaPolskaSettings {
                base_url: url(),
                token_url: url(),
                login: secret(),
                password: secret(),
            }),
            dpd: Some(DpdSettings {
                base_url: url(),
                channel: String::new(),
                login: secret(),
                password: secret(),
            }),
            gls: Some(oauth()),
            ups: Some(oauth()),
            fedex: Some(oauth()),
            ..CarrierSettings::none("fuzz/1.0")
        };
        Carriers::new(&settings, Arc::new(SystemClock)).expect("carriers")
    })
}

/// The bytes are a status, a space, and the body.
fn run(carrier: Carrier, bytes: &[u8]) {
    let (status, body) = bytes.split_at_checked(4).unwrap_or((b"200 ", bytes));
    let status = std::str::from_utf8(status)
        .ok()
        .and_then(|text| text.trim_end().parse().ok());
    let status = status.filter(|status| (100..600).contains(status)).unwrap_or(200);
    let number = TrackingNumber::new("620000000000000000000001".to_owned()).expect("a number");
    let understood = || {
        carriers()
            .understand(carrier, &number, status, body)
            .expect("it is set up")
    };
    let lookup = understood();
    // Long answers are read once: what they cost is measured.
    if body.len() < 32 * 1024 {
        assert_eq!(understood(), lookup, "understood in two ways");
    }
    match lookup {
        Lookup::Found(sighting) => assert!(sighting.raw_code.chars().count() <= LONGEST_CODE),
        Lookup::NotFound => {}
        Lookup::Unavailable(why) => is_printable(&why, 0),
    }
}
