//! What is peculiar to one carrier.

use orders::{
    Carrier, Lookup, Sighting,
    TrackingStatus::{Delivered, Exception, InTransit, Returned, Returning, Unknown},
};
use serde_json::{Value, json};

use crate::{
    fixtures::{self, dhl, dpd, fedex, gls, inpost, poczta, ups},
    stub::Reply,
    world::{NUMBER, World, at, found, reason},
};

async fn hears(world: &World, body: impl ToString) -> Lookup {
    world.hears(Reply::new(200, body.to_string())).await
}

async fn sees(world: &World, body: impl ToString) -> Sighting {
    found(hears(world, body).await)
}

/// `body` with what stands at `pointer` replaced.
fn with(mut body: Value, pointer: &str, value: Value) -> Value {
    *body.pointer_mut(pointer).unwrap() = value;
    body
}

fn event(code: &str, time: &str, state: &str) -> Value {
    json!({"code": code, "time": time, "finished": false, "canceled": false, "state": {"code": state, "name": "stan"}})
}

#[tokio::test]
async fn inpost_may_forget_a_parcel_after_its_delivery() {
    let world = World::new(Carrier::Inpost).await;
    assert_eq!(found(world.ask().await).status, Delivered);
    assert_eq!(
        world.hears(fixtures::not_known(Carrier::Inpost)).await,
        Lookup::NotFound
    );
}

#[tokio::test]
async fn an_inpost_complaint_does_not_undo_the_delivery() {
    let world = World::new(Carrier::Inpost).await;
    let claimed = with(inpost("delivered"), "/status", json!("claimed"));
    let sighting = sees(&world, claimed).await;
    assert_eq!(
        (sighting.status, sighting.at),
        (Delivered, Some(at("2026-01-05T11:30:00Z")))
    );
    assert_eq!(sees(&world, inpost("claimed")).await.status, Exception);
}

#[tokio::test]
async fn an_inpost_parcel_without_details_has_no_instant() {
    let world = World::new(Carrier::Inpost).await;
    let sighting = sees(&world, json!({"status": "delivered", "unheard_of": [1, 2]})).await;
    assert_eq!(
        sighting,
        Sighting {
            status: Delivered,
            at: None,
            raw_code: "delivered".to_owned()
        }
    );
}

#[tokio::test]
async fn dhl_ids_may_be_numbers_and_timestamps_may_lack_an_offset() {
    let world = World::new(Carrier::Dhl).await;
    let whole = with(dhl("delivered"), "/shipments/0/id", json!(123_456));
    let local = with(
        whole,
        "/shipments/0/status/timestamp",
        json!("2026-01-05T12:30:00"),
    );
    let sighting = sees(&world, local).await;
    assert_eq!(
        (sighting.status, sighting.at),
        (Delivered, Some(at("2026-01-05T11:30:00Z")))
    );
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
async fn a_cancelled_poczta_event_did_not_happen() {
    let world = World::new(Carrier::PocztaPolska).await;
    let mut cancelled = event("P_D", "2026-01-05T12:30:00", "DO");
    cancelled["canceled"] = json!(true);
    let events = json!([event("P_NAD", "2026-01-04T08:00:00", "NA"), cancelled]);
    let sighting = sees(&world, poczta(&events)).await;
    assert_eq!(
        (sighting.status, sighting.raw_code.as_str()),
        (InTransit, "P_NAD")
    );
    assert_eq!(sighting.at, Some(at("2026-01-04T07:00:00Z")));
    let none = json!([events[1].clone()]);
    assert_eq!(hears(&world, poczta(&none)).await, Lookup::NotFound);
}

#[tokio::test]
async fn poczta_events_are_sorted() {
    let world = World::new(Carrier::PocztaPolska).await;
    let events = json!([
        event("P_D", "2026-01-05T12:30:00", "DO"),
        event("P_NAD", "2026-01-04T08:00:00", "NA")
    ]);
    assert_eq!(sees(&world, poczta(&events)).await.status, Delivered);
    let events = json!([
        event("P_WD", "2026-01-05T12:30:00", "DO"),
        event("P_NAD", "2026-01-04T08:00:00", "NA")
    ]);
    assert_eq!(sees(&world, poczta(&events)).await.raw_code, "P_WD");
}

#[tokio::test]
async fn a_finished_poczta_parcel_may_be_a_return() {
    let world = World::new(Carrier::PocztaPolska).await;
    let turn = event("P_NDZ", "2026-01-05T12:30:00", "ZW");
    let under_way = poczta(&json!([event("P_NAD", "2026-01-04T08:00:00", "NA"), turn]));
    assert_eq!(sees(&world, &under_way).await.status, Returning);
    let finished = with(under_way, "/mailInfo/finished", json!(true));
    assert_eq!(sees(&world, finished).await.status, Returned);
    // What is handed over after the turn goes to the sender, however it is called.
    for last in [
        event("P_D", "2026-01-07T09:00:00", "DO"),
        event("P_D", "2026-01-07T09:00:00", "ZW"),
    ] {
        let back = with(poczta(&json!([turn, last])), "/mailInfo/finished", json!(true));
        let sighting = sees(&world, back).await;
        assert_eq!(
            (sighting.status, sighting.at),
            (Returned, Some(at("2026-01-07T08:00:00Z")))
        );
    }
    let state = event("P_D", "2026-01-07T09:00:00", "ZW");
    assert_eq!(sees(&world, poczta(&json!([state]))).await.status, Returned);
}

#[tokio::test]
async fn poczta_tells_polish_time_in_summer_and_winter() {
    let world = World::new(Carrier::PocztaPolska).await;
    for (local, utc) in [
        ("2026-07-05T12:30:00", "2026-07-05T10:30:00Z"),
        ("2026-10-25T02:30:00", "2026-10-25T00:30:00Z"),
        ("2026-10-25T03:30:00", "2026-10-25T02:30:00Z"),
        ("2026-03-29T03:30:00", "2026-03-29T01:30:00Z"),
    ] {
        let sighting = sees(&world, poczta(&json!([event("P_D", local, "DO")]))).await;
        assert_eq!(sighting.at, Some(at(utc)), "{local}");
    }
}

#[tokio::test]
async fn other_poczta_states_than_not_found_are_no_answers() {
    let world = World::new(Carrier::PocztaPolska).await;
    for status in [-2, -99, 1] {
        let why = reason(hears(&world, json!({"number": NUMBER, "mailStatus": status})).await);
        assert!(why.contains(&format!("mailStatus {status}")), "{why}");
    }
}

fn fault(words: &str) -> String {
    format!(
        "<S:Envelope xmlns:S=\"http://schemas.xmlsoap.org/soap/envelope/\"><S:Body><S:Fault>\
         <faultcode>S:Server</faultcode><faultstring>{words}</faultstring></S:Fault></S:Body></S:Envelope>"
    )
}

#[tokio::test]
async fn a_dpd_fault_comes_with_200_and_with_500() {
    for status in [200, 500] {
        let world = World::new(Carrier::Dpd).await;
        let why = reason(
            world
                .hears(Reply::new(status, fault("java.lang.NullPointerException")))
                .await,
        );
        assert_eq!(why, "the carrier refuses the question: a SOAP fault");
        let why = reason(
            world
                .hears(Reply::new(status, fault("Access denied to secured method")))
                .await,
        );
        assert_eq!(why, "the carrier refuses the credentials");
        assert!(reason(world.ask().await).starts_with("not asked"));
    }
    // An answer that fails is no answer, even if it reads like one.
    let world = World::new(Carrier::Dpd).await;
    let why = reason(
        world
            .hears(Reply::new(500, dpd(&[("190101", "2026-01-05T12:30:00")])))
            .await,
    );
    assert_eq!(why, "HTTP status 500");
}

#[tokio::test]
async fn dpd_codes_keep_their_leading_zeros() {
    let world = World::new(Carrier::Dpd).await;
    assert_eq!(
        sees(&world, dpd(&[("030103", "2026-01-05T12:30:00")]))
            .await
            .raw_code,
        "030103"
    );
    let sighting = sees(&world, dpd(&[("30103", "2026-01-05T12:30:00")])).await;
    assert_eq!((sighting.status, sighting.raw_code.as_str()), (Unknown, "30103"));
}

#[tokio::test]
async fn a_dpd_parcel_is_told_by_its_newest_event_unless_it_was_delivered() {
    let world = World::new(Carrier::Dpd).await;
    let sighting = sees(
        &world,
        dpd(&[
            ("120100", "2026-07-05T12:30:00.123"),
            ("040101", "2026-07-04T12:30:00"),
        ]),
    )
    .await;
    assert_eq!(
        (sighting.status, sighting.raw_code.as_str()),
        (InTransit, "120100")
    );
    assert_eq!(sighting.at, Some(at("2026-07-05T10:30:00.123Z")));
    let sighting = sees(
        &world,
        dpd(&[
            ("500600", "2026-01-06T00:00:00"),
            ("190101", "2026-01-05T12:30:00"),
        ]),
    )
    .await;
    assert_eq!(
        (sighting.status, sighting.at),
        (Delivered, Some(at("2026-01-05T11:30:00Z")))
    );
    let sighting = sees(
        &world,
        dpd(&[
            ("190101", "2026-01-06T00:00:00"),
            ("230403", "2026-01-05T12:30:00"),
        ]),
    )
    .await;
    assert_eq!(sighting.status, Returned);
}

#[tokio::test]
async fn a_gls_parcel_with_another_error_is_no_answer() {
    let world = World::new(Carrier::Gls).await;
    let error = json!({"parcels": [{"requested": NUMBER, "errorCode": "E_500_01"}]});
    assert!(reason(hears(&world, error).await).starts_with("the carrier refuses"));
    let mut body = gls("INTRANSIT");
    let parcels = body["parcels"].as_array_mut().unwrap();
    parcels.insert(0, json!({"requested": "another", "errorCode": "E_404_01"}));
    assert_eq!(sees(&world, body).await.status, InTransit);
}

#[tokio::test]
async fn ups_does_not_know_a_number_in_three_ways() {
    let world = World::new(Carrier::Ups).await;
    let warning = json!({"trackResponse": {"shipment": [{
        "inquiryNumber": NUMBER, "warnings": [{"code": "TW0001", "message": "Tracking Information Not Found"}],
    }]}});
    assert_eq!(hears(&world, warning).await, Lookup::NotFound);
    let error = |code| json!({"response": {"errors": [{"code": code, "message": "words"}]}}).to_string();
    assert_eq!(
        world.hears(Reply::new(404, error("151018"))).await,
        Lookup::NotFound
    );
    assert_eq!(
        world.hears(Reply::new(400, error("TV1002"))).await,
        Lookup::NotFound
    );
    assert!(reason(world.hears(Reply::new(400, error("TV1001"))).await).starts_with("the carrier refuses"));
    assert_eq!(
        reason(world.hears(Reply::new(404, "{}")).await),
        "HTTP status 404"
    );
}

#[tokio::test]
async fn a_ups_delivery_without_activities_is_told_in_polish_time() {
    let world = World::new(Carrier::Ups).await;
    let package = "/trackResponse/shipment/0/package/0";
    let bare = with(ups("011"), &format!("{package}/activity"), json!([]));
    assert_eq!(sees(&world, &bare).await.at, Some(at("2026-01-05T11:30:00Z")));
    let vague = with(
        bare,
        &format!("{package}/deliveryTime"),
        json!([{"type": "EDW", "endTime": "123000"}]),
    );
    let sighting = sees(&world, vague).await;
    assert_eq!((sighting.status, sighting.at), (Delivered, None));
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
        let sighting = sees(&world, body).await;
        assert_eq!(
            (sighting.status, sighting.at),
            (InTransit, Some(at("2026-01-05T12:00:00Z")))
        );
    }
}

#[tokio::test]
async fn a_derived_fedex_code_helps_where_the_code_is_not_listed() {
    let world = World::new(Carrier::Fedex).await;
    let body = with(
        fedex("DL"),
        "/output/completeTrackResults/0/trackResults/0/latestStatusDetail",
        json!({"code": "ZZ", "derivedCode": "IT"}),
    );
    let sighting = sees(&world, body).await;
    assert_eq!((sighting.status, sighting.raw_code.as_str()), (InTransit, "ZZ"));
}
