//! Handwritten bodies in the carriers' formats.

use orders::Carrier;
use serde_json::{Value, json};

use crate::{stub::Reply, world::NUMBER};

/// A parcel with this code since 5 January 2026, 11:30 UTC.
pub(crate) fn parcel(carrier: Carrier, code: &str) -> Reply {
    let body = match carrier {
        Carrier::Inpost => inpost(code),
        Carrier::Dhl => dhl(code),
        Carrier::PocztaPolska => poczta(&json!([
            {"code": "P_REJ_KN1", "name": "Rejestracja", "time": "2026-01-02T09:00:00", "finished": false,
             "canceled": false, "state": {"code": "RE", "name": "Zarejestrowana"}},
            {"code": code, "name": "Zdarzenie", "time": "2026-01-05T12:30:00", "finished": false,
             "canceled": false, "state": {"code": "XX", "name": "Stan"}},
        ])),
        Carrier::Dpd => {
            return Reply::new(
                200,
                dpd(&[(code, "2026-01-05T12:30:00"), ("030103", "2026-01-02T09:00:00")]),
            );
        }
        Carrier::Gls => gls(code),
        Carrier::Ups => ups(code),
        Carrier::Fedex => fedex(code),
        Carrier::Other => panic!("nobody to ask"),
    };
    Reply::new(200, body.to_string())
}

/// The code of a delivered parcel.
pub(crate) fn delivered_code(carrier: Carrier) -> &'static str {
    match carrier {
        Carrier::Inpost | Carrier::Dhl => "delivered",
        Carrier::PocztaPolska => "P_D",
        Carrier::Dpd => "190101",
        Carrier::Gls => "DELIVERED",
        Carrier::Ups => "011",
        Carrier::Fedex => "DL",
        Carrier::Other => panic!("nobody to ask"),
    }
}

pub(crate) fn delivered(carrier: Carrier) -> Reply {
    parcel(carrier, delivered_code(carrier))
}

/// The carrier's answer for an unknown number.
pub(crate) fn not_known(carrier: Carrier) -> Reply {
    let (status, body) = match carrier {
        Carrier::Inpost => (
            404,
            json!({"status": 404, "error": "resource_not_found", "message": "Not found.", "details": {}}),
        ),
        Carrier::Dhl => {
            let detail = "No shipment with given tracking number found.";
            (
                404,
                json!({"title": "No result found", "status": 404, "detail": detail}),
            )
        }
        Carrier::PocztaPolska => (200, json!({"number": NUMBER, "mailStatus": -1})),
        Carrier::Dpd => return Reply::new(200, dpd(&[])),
        Carrier::Gls => {
            let message = "no data found for search";
            (
                200,
                json!({"parcels": [{"requested": NUMBER, "errorCode": "E_404_01", "errorMessage": message}]}),
            )
        }
        Carrier::Ups => {
            let error = json!({"code": "TRK404", "message": "No tracking information available"});
            (404, json!({"response": {"errors": [error]}}))
        }
        Carrier::Fedex => {
            let error = json!({"code": "TRACKING.TRACKINGNUMBER.NOTFOUND", "message": "Not found.", "parameterList": []});
            let result = json!({"trackingNumber": NUMBER, "trackResults": [{"error": error}]});
            (
                200,
                json!({"transactionId": "t", "output": {"completeTrackResults": [result]}}),
            )
        }
        Carrier::Other => panic!("nobody to ask"),
    };
    Reply::new(status, body.to_string())
}

/// The `n`th token, valid for an hour if the carrier states it.
pub(crate) fn token(carrier: Carrier, n: usize) -> Reply {
    match carrier {
        Carrier::PocztaPolska => Reply::new(200, format!("access3token-{n}")),
        _ => token_for(n, 3_600),
    }
}

/// An OAuth token that is valid for `seconds`.
pub(crate) fn token_for(n: usize, seconds: u32) -> Reply {
    let token = format!("access3token-{n}");
    Reply::new(
        200,
        json!({"access_token": token, "token_type": "Bearer", "expires_in": seconds}).to_string(),
    )
}

pub(crate) fn inpost(code: &str) -> Value {
    json!({
        "tracking_number": NUMBER, "type": "inpost_locker_standard", "service": "inpost_locker_standard",
        "status": code, "custom_attributes": {"size": "A"}, "expected_flow": [],
        "tracking_details": [
            {"status": code, "origin_status": "X", "agency": null, "datetime": "2026-01-05T12:30:00.000+01:00"},
            {"status": "confirmed", "origin_status": "PPN", "agency": null, "datetime": "2026-01-02T10:00:00.000+01:00"},
        ],
        "created_at": "2026-01-02T09:00:00.000+01:00", "updated_at": "2026-01-05T12:30:00.000+01:00",
    })
}

pub(crate) fn dhl(code: &str) -> Value {
    json!({"url": "/shipments", "shipments": [{
        "id": NUMBER, "service": "parcel-pl", "serviceUrl": "https://www.dhl.com/",
        "status": {"timestamp": "2026-01-05T11:30:00Z", "statusCode": code, "status": "words", "description": "words"},
        "events": [{"timestamp": "2026-01-05T11:30:00Z", "statusCode": code}],
    }]})
}

/// Poczta Polska's answer with these events, oldest first.
pub(crate) fn poczta(events: &Value) -> Value {
    json!({
        "number": NUMBER, "mailStatus": 0,
        "mailInfo": {"number": NUMBER, "typeOfMailName": "Paczka", "finished": false, "events": events},
    })
}

/// DPD's envelope with these codes and times, newest first.
pub(crate) fn dpd(events: &[(&str, &str)]) -> String {
    let mut listed = String::new();
    for (code, time) in events {
        listed += "<eventsList><country>PL</country><depot>1302</depot><description>słowa</description>";
        listed += &[
            "<businessCode>",
            code,
            "</businessCode><eventTime>",
            time,
            "</eventTime>",
        ]
        .concat();
        listed += &["<id>1</id><waybill>", NUMBER, "</waybill></eventsList>"].concat();
    }
    format!(
        "<?xml version=\"1.0\"?><S:Envelope xmlns:S=\"http://schemas.xmlsoap.org/soap/envelope/\"><S:Body>\
         <ns2:getEventsForWaybillV1Response xmlns:ns2=\"http://events.dpdinfoservices.dpd.com.pl/\"><return>\
         <confirmId>0</confirmId>{listed}</return></ns2:getEventsForWaybillV1Response></S:Body></S:Envelope>"
    )
}

/// A SOAP fault from DPD.
pub(crate) fn fault(words: &str) -> String {
    format!(
        "<S:Envelope xmlns:S=\"http://schemas.xmlsoap.org/soap/envelope/\"><S:Body><S:Fault>\
         <faultcode>S:Server</faultcode><faultstring>{words}</faultstring></S:Fault></S:Body></S:Envelope>"
    )
}

pub(crate) fn gls(code: &str) -> Value {
    json!({"parcels": [{
        "requested": NUMBER, "unitno": "12345678901", "status": code, "statusDateTime": "2026-01-05T12:30:00+0100",
        "events": [{"code": "2.0", "city": "Wrocław", "eventDateTime": "2026-01-05T12:30:00+0100"}],
    }]})
}

pub(crate) fn ups(code: &str) -> Value {
    json!({"trackResponse": {"shipment": [{"inquiryNumber": NUMBER, "package": [{
        "trackingNumber": NUMBER,
        "currentStatus": {"description": "words", "code": code, "statusCode": code},
        "deliveryDate": [{"type": "DEL", "date": "20260105"}],
        "deliveryTime": [{"type": "DEL", "startTime": "", "endTime": "123000"}],
        "activity": [
            {"date": "20260105", "time": "123000", "gmtDate": "20260105", "gmtTime": "11:30:00", "gmtOffset": "+01:00",
             "status": {"type": "D", "description": "words", "code": "KB", "statusCode": code}},
            {"date": "20260102", "time": "100000", "gmtDate": "20260102", "gmtTime": "09:00:00",
             "status": {"type": "M", "description": "words", "code": "MP", "statusCode": "003"}},
        ],
    }]}]}})
}

pub(crate) fn fedex(code: &str) -> Value {
    json!({"transactionId": "t", "output": {"completeTrackResults": [{"trackingNumber": NUMBER, "trackResults": [{
        "latestStatusDetail": {"code": code, "derivedCode": code, "statusByLocale": "words"},
        "dateAndTimes": [
            {"type": "ESTIMATED_DELIVERY", "dateTime": "2026-01-09T00:00:00+01:00"},
            {"type": "ACTUAL_DELIVERY", "dateTime": "2026-01-05T12:30:00+01:00"},
        ],
        "scanEvents": [
            {"date": "2026-01-05T12:30:00+01:00", "eventType": code},
            {"date": "2026-01-02T10:00:00+01:00", "eventType": "OC"},
        ],
    }]}]}})
}
