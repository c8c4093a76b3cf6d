//! Carriers' answers: parsing succeeds or fails deterministically, and its errors are short.

use std::sync::Arc;

use adapter_carriers::{Account, CarrierSettings, Carriers, DEADLINE};
use adapter_sealing::SystemClock;
use orders::{Carrier, Lookup, TrackingNumber};

use crate::{always, is_linear, is_printable};

/// Answers, one on each line: the carrier or `any`, a status, a body.
const ANSWERS: &str = r#"
inpost 200 {"tracking_number":"620000000000000000000001","status":"delivered","tracking_details":[{"status":"delivered","origin_status":"X","agency":null,"datetime":"2026-01-05T12:30:00.000+01:00"},{"status":"confirmed","datetime":"2026-01-02T10:00:00.000+01:00"}],"updated_at":"2026-01-05T12:30:00.000+01:00"}
inpost 404 {"status":404,"error":"resource_not_found","message":"Not found.","details":{}}
dhl 200 {"shipments":[{"id":"620000000000000000000001","service":"parcel-pl","status":{"timestamp":"2026-01-05T11:30:00Z","statusCode":"delivered"},"returnFlag":true,"events":[{"timestamp":"2026-01-05T11:30:00Z","statusCode":"transit"}]}]}
dhl 404 {"title":"No result found","status":404,"detail":"No shipment with given tracking number found."}
poczta_polska 200 {"number":"620000000000000000000001","mailStatus":0,"mailInfo":{"finished":false,"events":[{"code":"P_REJ_KN1","time":"2026-01-02T09:00:00","finished":false,"canceled":false,"state":{"code":"RE"}},{"code":"P_D","time":"2026-01-05T12:30:00","canceled":false,"state":{"code":"ZW"}}]}}
poczta_polska 200 {"number":"620000000000000000000001","mailStatus":-1}
dpd 200 <?xml version="1.0"?><S:Envelope xmlns:S="http://schemas.xmlsoap.org/soap/envelope/"><S:Body><ns2:getEventsForWaybillV1Response xmlns:ns2="http://events.dpdinfoservices.dpd.com.pl/"><return><eventsList><businessCode>190101</businessCode><eventTime>2026-01-05T12:30:00</eventTime></eventsList><eventsList><businessCode>030103</businessCode><eventTime>2026-01-02T09:00:00</eventTime></eventsList></return></ns2:getEventsForWaybillV1Response></S:Body></S:Envelope>
dpd 500 <S:Envelope xmlns:S="http://schemas.xmlsoap.org/soap/envelope/"><S:Body><S:Fault><faultcode>S:Server</faultcode><faultstring>Access denied &#38; <![CDATA[so]]></faultstring></S:Fault></S:Body></S:Envelope>
gls 200 {"parcels":[{"requested":"620000000000000000000001","unitno":"12345678901","status":"DELIVERED","statusDateTime":"2026-01-05T12:30:00+0100","events":[{"code":"2.0","city":"Wrocław","eventDateTime":"2026-01-05T12:30:00+0100"}]}]}
gls 200 {"parcels":[{"requested":"620000000000000000000001","errorCode":"E_404_01","errorMessage":"no data found for search"}]}
ups 200 {"trackResponse":{"shipment":[{"inquiryNumber":"620000000000000000000001","package":[{"trackingNumber":"620000000000000000000001","currentStatus":{"code":"011","statusCode":"011"},"deliveryDate":[{"type":"DEL","date":"20260105"}],"deliveryTime":[{"type":"DEL","endTime":"123000"}],"activity":[{"gmtDate":"20260105","gmtTime":"11:30:00","status":{"type":"D","statusCode":"011"}}]}]}]}}
ups 404 {"response":{"errors":[{"code":"TRK404","message":"No tracking information available"},{"code":"TV1002"}]}}
fedex 200 {"output":{"completeTrackResults":[{"trackingNumber":"620000000000000000000001","trackResults":[{"latestStatusDetail":{"code":"DL","derivedCode":"DL"},"dateAndTimes":[{"type":"ACTUAL_DELIVERY","dateTime":"2026-01-05T12:30:00+01:00"}],"scanEvents":[{"date":"2026-01-05T12:30:00+01:00","eventType":"DL"}]}]}]}}
fedex 200 {"output":{"completeTrackResults":[{"trackResults":[{"error":{"code":"TRACKING.TRACKINGNUMBER.NOTFOUND"}}]}]}}
any 500 {"errors": [true, {"code": "x"}], "time": "-262000-01-01T00:00:00"}
any 400 {"time": "2026-10-25T02:30:00", "date": "2026-03-29 02:30"}"#;

const JSON_EVENT: &str = r#"{"code": "P_D", "status": "x", "time": "2026-01-05T12:30:00"},"#;

const SHAPES: [[&str; 3]; 9] = [
    ["200 {\"a\":[", JSON_EVENT, "0]}"],
    ["200 ", "{\"a\":", ""],
    ["200 {\"events\":[", JSON_EVENT, "0]}"],
    [
        "200 <getEventsForWaybillV1Response>",
        "<eventsList><businessCode>190101</businessCode></eventsList>",
        "</getEventsForWaybillV1Response>",
    ],
    ["200 ", "<a>", ""],
    ["200 <a b='", "&amp;", "'/>"],
    ["200 <a ", "b#='' ", "/>"],
    ["200 <a ", "xmlns:a#='x' ", "/>"],
    ["200 ", "<a xmlns:b#='x'>", ""],
];

#[test]
fn an_answer_is_parsed_or_refused_always_in_the_same_way() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _within = runtime.enter();
    // Clients of all carriers; none sends a request.
    let account = |carrier| Account::new(carrier, "login".into(), "secret".into());
    let settings = CarrierSettings {
        deadline: DEADLINE,
        user_agent: "fuzz/1.0".to_owned(),
        accounts: Carrier::ALL.into_iter().filter_map(account).collect(),
    };
    let carriers = Carriers::new(&settings, Arc::new(SystemClock)).unwrap();
    let number = TrackingNumber::new("620000000000000000000001".to_owned()).unwrap();
    for carrier in Carrier::ALL.into_iter().filter(|one| *one != Carrier::Other) {
        let lines = ANSWERS.lines().filter_map(|line| line.split_once(' '));
        let samples: Vec<_> = lines
            .filter(|(of, _)| [carrier.as_str(), "any"].contains(of))
            .map(|(_, answer)| answer)
            .collect();
        assert!(samples.len() > 3, "{samples:?}");
        let parse = |bytes: &[u8]| {
            let (status, body) = bytes.split_at_checked(4).unwrap_or((b"200 ", bytes));
            let status = str::from_utf8(status)
                .ok()
                .and_then(|text| text.trim_end().parse().ok())
                .filter(|status| (100..600).contains(status));
            carriers
                .parse_answer(carrier, &number, status.unwrap_or(200), body)
                .unwrap()
        };
        always(&samples, |bytes| {
            let lookup = parse(bytes);
            assert_eq!(parse(bytes), lookup);
            match lookup {
                Lookup::Found(tracking_report) => assert!(tracking_report.raw_code.chars().count() <= 64),
                Lookup::NotFound | Lookup::NotConfigured => {}
                Lookup::Unavailable(why) => is_printable(&why, 0),
            }
        });
        is_linear(&SHAPES, parse);
    }
}
