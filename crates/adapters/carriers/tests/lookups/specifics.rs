//! Behaviour of single carriers.

use orders::{
    Carrier, Lookup, Sighting,
    TrackingStatus::{self, Delivered, Exception, InTransit, Returned, Returning, Unknown},
};
use serde_json::{Value, json};

use crate::{
    fixtures::{dhl, dpd, fault, fedex, gls, inpost, poczta, ups},
    stub::Reply,
    world::{NUMBER, World, at, found, reason},
};

async fn hears(world: &World, body: impl ToString) -> Lookup {
    world.hears(Reply::new(200, body.to_string())).await
}

async fn sees(world: &World, body: impl ToString) -> Sighting {
    found(hears(world, body).await)
}

/// Asserts status and instant that the client reads from a body.
async fn reads(world: &World, body: impl ToString, status: TrackingStatus, instant: &str) {
    let sighting = sees(world, body).await;
    assert_eq!((sighting.status, sighting.at), (status, Some(at(instant))));
}

/// `body` with another value at `pointer`.
fn with(mut body: Value, pointer: &str, value: Value) -> Value {
    *body.pointer_mut(pointer).unwrap() = value;
    body
}

fn event(code: &str, time: &str, state: &str) -> Value {
    json!({"code": code, "time": time, "finished": false, "canceled": false, "state": {"code": state, "name": "stan"}})
}

#[tokio::test]
async fn inpost_complaints_do_not_undo_a_delivery() {
    let world = World::new(Carrier::Inpost).await;
    let claimed = with(inpost("delivered"), "/status", json!("claimed"));
    reads(&world, claimed, Delivered, "2026-01-05T11:30:00Z").await;
    assert_eq!(sees(&world, inpost("claimed")).await.status, Exception);
    // A parcel without details has no instant.
    let bare = sees(&world, json!({"status": "delivered", "unheard_of": [1, 2]})).await;
    assert_eq!((bare.status, bare.at), (Delivered, None));
}

#[tokio::test]
async fn dhl_ids_may_be_numbers_and_timestamps_may_lack_an_offset() {
    let world = World::new(Carrier::Dhl).await;
    let body = with(dhl("delivered"), "/shipments/0/id", json!(123_456));
    let local = json!("2026-01-05T12:30:00");
    let body = with(body, "/shipments/0/status/timestamp", local);
    reads(&world, body, Delivered, "2026-01-05T11:30:00Z").await;
}

#[tokio::test]
async fn of_several_dhl_shipments_the_one_with_the_number_counts() {
    let world = World::new(Carrier::Dhl).await;
    let mut body = dhl("delivered");
    let mut other = dhl("transit")["shipments"][0].clone();
    other["id"] = json!(4711);
    body["shipments"].as_array_mut().unwrap().insert(0, other);
    assert_eq!(sees(&world, body).await.status, Delivered);
    assert_eq!(hears(&world, json!({"shipments": []})).await, Lookup::NotFound);
}

#[tokio::test]
async fn a_dhl_return_is_never_a_delivery() {
    let world = World::new(Carrier::Dhl).await;
    for (code, status) in [
        ("delivered", Returned),
        ("transit", Returning),
        ("failure", Returning),
        ("what", Unknown),
    ] {
        let mut body = dhl(code);
        body["shipments"][0]["returnFlag"] = json!(true);
        assert_eq!(sees(&world, body).await.status, status, "{code}");
    }
}

#[tokio::test]
async fn poczta_events_are_sorted_and_cancelled_ones_ignored() {
    let world = World::new(Carrier::PocztaPolska).await;
    let sent = event("P_NAD", "2026-01-04T08:00:00", "NA");
    let delivered = event("P_D", "2026-01-05T12:30:00", "DO");
    let out = event("P_WD", "2026-01-05T12:30:00", "DO");
    assert_eq!(
        sees(&world, poczta(&json!([delivered, sent]))).await.status,
        Delivered
    );
    assert_eq!(sees(&world, poczta(&json!([out, sent]))).await.raw_code, "P_WD");
    let cancelled = with(delivered, "/canceled", json!(true));
    let body = poczta(&json!([sent, cancelled]));
    reads(&world, body, InTransit, "2026-01-04T07:00:00Z").await;
    assert_eq!(hears(&world, poczta(&json!([cancelled]))).await, Lookup::NotFound);
}

#[tokio::test]
async fn a_finished_poczta_parcel_may_be_a_return() {
    let world = World::new(Carrier::PocztaPolska).await;
    let turn = event("P_NDZ", "2026-01-05T12:30:00", "ZW");
    let under_way = poczta(&json!([event("P_NAD", "2026-01-04T08:00:00", "NA"), turn]));
    assert_eq!(sees(&world, &under_way).await.status, Returning);
    let finished = |body| with(body, "/mailInfo/finished", json!(true));
    assert_eq!(sees(&world, finished(under_way)).await.status, Returned);
    // A delivery on the way back goes to the sender, whatever its code.
    for state in ["DO", "ZW"] {
        let last = event("P_D", "2026-01-07T09:00:00", state);
        let body = finished(poczta(&json!([turn, last])));
        reads(&world, body, Returned, "2026-01-07T08:00:00Z").await;
    }
    let state = event("P_D", "2026-01-07T09:00:00", "ZW");
    assert_eq!(sees(&world, poczta(&json!([state]))).await.status, Returned);
}

#[tokio::test]
async fn other_poczta_states_than_not_found_are_failures() {
    let world = World::new(Carrier::PocztaPolska).await;
    for status in [-2, -99, 1] {
        let reason = reason(hears(&world, json!({"number": NUMBER, "mailStatus": status})).await);
        assert!(reason.contains(&format!("mailStatus {status}")), "{reason}");
    }
}

#[tokio::test]
async fn a_dpd_fault_comes_with_200_and_with_500() {
    for status in [200, 500] {
        let world = World::new(Carrier::Dpd).await;
        let rejected = Reply::new(status, fault("java.lang.NullPointerException"));
        assert_eq!(
            world.fails(rejected).await,
            "the carrier refuses the question: a SOAP fault"
        );
        let denied = Reply::new(status, fault("Access denied to secured method"));
        assert_eq!(world.fails(denied).await, "the carrier refuses the credentials");
        assert!(reason(world.ask().await).starts_with("not asked"));
    }
    // An error status is a failure, even with the body of a success.
    let world = World::new(Carrier::Dpd).await;
    let failed = Reply::new(500, dpd(&[("190101", "2026-01-05T12:30:00")]));
    assert_eq!(world.fails(failed).await, "HTTP status 500");
}

#[tokio::test]
async fn the_newest_dpd_event_counts_unless_the_parcel_was_delivered() {
    let world = World::new(Carrier::Dpd).await;
    for (newest, oldest, status, instant) in [
        (
            ("120100", "2026-07-05T12:30:00.123"),
            ("040101", "2026-07-04T12:30:00"),
            InTransit,
            "2026-07-05T10:30:00.123Z",
        ),
        (
            ("500600", "2026-01-06T00:00:00"),
            ("190101", "2026-01-05T12:30:00"),
            Delivered,
            "2026-01-05T11:30:00Z",
        ),
        (
            ("190101", "2026-01-06T00:00:00"),
            ("230403", "2026-01-05T12:30:00"),
            Returned,
            "2026-01-05T23:00:00Z",
        ),
    ] {
        reads(&world, dpd(&[newest, oldest]), status, instant).await;
    }
}

#[tokio::test]
async fn another_gls_error_is_a_failure_and_another_parcel_is_ignored() {
    let world = World::new(Carrier::Gls).await;
    let error = json!({"parcels": [{"requested": NUMBER, "errorCode": "E_500_01"}]});
    assert!(reason(hears(&world, error).await).starts_with("the carrier refuses"));
    let mut body = gls("INTRANSIT");
    let parcels = body["parcels"].as_array_mut().unwrap();
    parcels.insert(0, json!({"requested": "another", "errorCode": "E_404_01"}));
    assert_eq!(sees(&world, body).await.status, InTransit);
}

#[tokio::test]
async fn ups_has_three_ways_of_not_knowing_a_number() {
    let world = World::new(Carrier::Ups).await;
    let warning = json!({"trackResponse": {"shipment": [{
        "inquiryNumber": NUMBER, "warnings": [{"code": "TW0001", "message": "Tracking Information Not Found"}],
    }]}});
    assert_eq!(hears(&world, warning).await, Lookup::NotFound);
    let error = |status, code| {
        let body = json!({"response": {"errors": [{"code": code, "message": "words"}]}});
        Reply::new(status, body.to_string())
    };
    for (status, code) in [(404, "151018"), (400, "TV1002")] {
        assert_eq!(world.hears(error(status, code)).await, Lookup::NotFound);
    }
    assert!(
        world
            .fails(error(400, "TV1001"))
            .await
            .starts_with("the carrier refuses")
    );
    assert_eq!(world.fails(Reply::new(404, "{}")).await, "HTTP status 404");
}

#[tokio::test]
async fn a_ups_delivery_without_activities_is_in_polish_time() {
    let world = World::new(Carrier::Ups).await;
    let package = "/trackResponse/shipment/0/package/0";
    let bare = with(ups("011"), &format!("{package}/activity"), json!([]));
    reads(&world, &bare, Delivered, "2026-01-05T11:30:00Z").await;
    let expected = json!([{"type": "EDW", "endTime": "123000"}]);
    let vague = sees(&world, with(bare, &format!("{package}/deliveryTime"), expected)).await;
    assert_eq!((vague.status, vague.at), (Delivered, None));
}

#[tokio::test]
async fn fedex_alerts_are_text_or_a_list() {
    let world = World::new(Carrier::Fedex).await;
    for alerts in [
        json!("TRACKING.DATA.NOTFOUND"),
        json!([{"code": "VIRTUAL.RESPONSE"}]),
    ] {
        let mut body = fedex("DL");
        body["output"]["alerts"] = alerts;
        assert_eq!(sees(&world, body).await.status, Delivered);
    }
}

#[tokio::test]
async fn of_two_fedex_results_the_newest_counts() {
    let world = World::new(Carrier::Fedex).await;
    let old = fedex("DL")["output"]["completeTrackResults"][0]["trackResults"][0].clone();
    let new = json!({
        "latestStatusDetail": {"code": "IT"},
        "dateAndTimes": [{"type": "ACTUAL_PICKUP", "dateTime": "2026-01-05T13:00:00+01:00"}],
    });
    let failed = json!({"error": {"code": "TRACKING.TRACKINGNUMBER.NOTFOUND"}});
    for results in [json!([failed, old, new]), json!([new, old, failed])] {
        let body = json!({"output": {"completeTrackResults": [{"trackResults": results}]}});
        reads(&world, body, InTransit, "2026-01-05T12:00:00Z").await;
    }
}

#[tokio::test]
async fn a_derived_fedex_code_helps_where_the_code_is_not_listed() {
    let world = World::new(Carrier::Fedex).await;
    let pointer = "/output/completeTrackResults/0/trackResults/0/latestStatusDetail";
    let detail = json!({"code": "ZZ", "derivedCode": "IT"});
    let sighting = sees(&world, with(fedex("DL"), pointer, detail)).await;
    assert_eq!((sighting.status, &*sighting.raw_code), (InTransit, "ZZ"));
}
