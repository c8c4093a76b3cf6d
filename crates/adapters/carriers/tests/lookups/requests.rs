//! What the carriers see of us.

use base64::{Engine, engine::general_purpose::STANDARD};
use orders::{Carrier, CarrierLookup, Lookup, TrackingNumber};
use serde_json::{Value, json};
use url::Url;

use crate::{
    stub::Seen,
    world::{CARRIERS, LOGIN, NUMBER, SECRET, World, settings},
};

async fn question(carrier: Carrier) -> (Seen, Option<Seen>) {
    let world = World::new(carrier).await;
    assert!(matches!(world.ask().await, Lookup::Found(_)), "{carrier:?}");
    let (asked, tokens) = (world.stub.asked(), world.stub.token_requests());
    assert_eq!(asked.len(), 1);
    assert_eq!(
        asked[0].headers["user-agent"],
        "Tests/1.0 (+https://tests.example)"
    );
    (asked[0].clone(), tokens.first().cloned())
}

#[tokio::test]
async fn inpost() {
    let (seen, _) = question(Carrier::Inpost).await;
    assert_eq!(
        (seen.method.as_str(), seen.target),
        ("GET", format!("/v1/tracking/{NUMBER}"))
    );
    assert_eq!(seen.headers["authorization"], format!("Bearer {SECRET}"));
}

#[tokio::test]
async fn inpost_without_a_token() {
    let world = World::new(Carrier::Inpost).await;
    let url = Url::parse(&format!("http://{}/behind/a/proxy/", world.stub.address)).unwrap();
    let mut settings = settings(Carrier::Inpost, &url, adapter_carriers::DEADLINE);
    settings.inpost.as_mut().unwrap().token = None;
    let carriers = adapter_carriers::Carriers::new(&settings, world.clock.clone()).unwrap();
    let number = TrackingNumber::new(NUMBER.to_owned()).unwrap();
    assert!(matches!(
        carriers.look_up(Carrier::Inpost, &number).await,
        Lookup::Found(_)
    ));
    let seen = world.stub.asked().remove(0);
    assert_eq!(seen.target, format!("/behind/a/proxy/v1/tracking/{NUMBER}"));
    assert!(!seen.headers.contains_key("authorization"));
}

#[tokio::test]
async fn dhl() {
    let (seen, _) = question(Carrier::Dhl).await;
    let target = format!("/track/shipments?trackingNumber={NUMBER}&language=en&service=parcel-pl");
    assert_eq!((seen.method.as_str(), seen.target), ("GET", target));
    assert_eq!(seen.headers["dhl-api-key"], SECRET);
}

#[tokio::test]
async fn poczta_polska() {
    let (seen, token) = question(Carrier::PocztaPolska).await;
    let target = format!("/uss/v2.0/tracking/checkmailex?number={NUMBER}&language=PL&states=true");
    assert_eq!((seen.method.as_str(), seen.target), ("GET", target));
    assert_eq!(seen.headers["api_key"], "access3token-1");
    let login = token.unwrap();
    assert_eq!(
        (login.method.as_str(), login.headers["content-type"].as_str()),
        ("POST", "application/json")
    );
    let body: Value = serde_json::from_str(&login.body).unwrap();
    assert_eq!(
        body,
        json!({"login": LOGIN, "password": SECRET, "language": "PL"})
    );
}

#[tokio::test]
async fn dpd() {
    let (seen, _) = question(Carrier::Dpd).await;
    let target = "/DPDInfoServicesObjEventsService/DPDInfoServicesObjEvents";
    assert_eq!((seen.method.as_str(), seen.target.as_str()), ("POST", target));
    assert!(seen.headers["content-type"].starts_with("text/xml"));
    assert_eq!(seen.headers["soapaction"], "\"\"");
    for part in [
        "http://events.dpdinfoservices.dpd.com.pl/",
        &format!("<waybill>{NUMBER}</waybill>"),
        "<eventsSelectType>ALL</eventsSelectType>",
        &format!("<channel>channel1</channel><login>{LOGIN}</login><password>{SECRET}</password>"),
    ] {
        assert!(seen.body.contains(part), "{part}");
    }
}

fn assert_basic(token: &Seen) {
    let pair = STANDARD.encode(format!("{LOGIN}:{SECRET}"));
    assert_eq!(token.headers["authorization"], format!("Basic {pair}"));
    assert_eq!(token.headers["content-type"], "application/x-www-form-urlencoded");
    assert_eq!(
        (token.method.as_str(), token.body.as_str()),
        ("POST", "grant_type=client_credentials")
    );
}

#[tokio::test]
async fn gls() {
    let (seen, token) = question(Carrier::Gls).await;
    let target = format!("/track-and-trace-v1/tracking/simple/trackids/{NUMBER}?showEvents=true");
    assert_eq!((seen.method.as_str(), seen.target), ("GET", target));
    assert_eq!(seen.headers["authorization"], "Bearer access3token-1");
    assert_basic(&token.unwrap());
}

#[tokio::test]
async fn ups() {
    let (seen, token) = question(Carrier::Ups).await;
    let target = format!("/api/track/v1/details/{NUMBER}?locale=pl_PL");
    assert_eq!((seen.method.as_str(), seen.target), ("GET", target));
    assert_eq!(seen.headers["authorization"], "Bearer access3token-1");
    assert!(seen.headers.contains_key("transactionsrc"));
    let world = World::new(Carrier::Ups).await;
    world.ask().await;
    world.ask().await;
    let ids: Vec<_> = world
        .stub
        .asked()
        .iter()
        .map(|seen| seen.headers["transid"].clone())
        .collect();
    assert_ne!(ids[0], ids[1]);
    assert_basic(&token.unwrap());
}

#[tokio::test]
async fn fedex() {
    let (seen, token) = question(Carrier::Fedex).await;
    assert_eq!(
        (seen.method.as_str(), seen.target.as_str()),
        ("POST", "/track/v1/trackingnumbers")
    );
    assert_eq!(seen.headers["authorization"], "Bearer access3token-1");
    let body: Value = serde_json::from_str(&seen.body).unwrap();
    let info = json!({"trackingNumberInfo": {"trackingNumber": NUMBER}});
    assert_eq!(
        body,
        json!({"includeDetailedScans": true, "trackingInfo": [info]})
    );
    let token = token.unwrap();
    let form = format!("grant_type=client_credentials&client_id={LOGIN}&client_secret={SECRET}");
    assert_eq!((token.method, token.body), ("POST".to_owned(), form));
}

#[tokio::test]
async fn who_is_not_configured_is_not_asked() {
    for configured in CARRIERS {
        let world = World::new(configured).await;
        assert_eq!(world.carriers.asked().collect::<Vec<_>>(), [configured]);
        for carrier in Carrier::ALL.into_iter().filter(|carrier| *carrier != configured) {
            let lookup = world.carriers.look_up(carrier, &crate::world::number()).await;
            assert!(matches!(lookup, Lookup::Unavailable(reason) if reason.starts_with("not asked")));
        }
        assert_eq!(world.asked() + world.token_requests(), 0);
    }
}
