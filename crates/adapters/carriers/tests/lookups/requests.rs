//! The requests that carriers receive.

use adapter_carriers::{Carriers, DEADLINE};
use base64::{Engine, engine::general_purpose::STANDARD};
use orders::{Carrier, CarrierLookup, Lookup};
use serde_json::{Value, json};

use crate::world::{self, CARRIERS, LOGIN, NUMBER, SECRET, World, clock, number};

/// Carrier, method, target and a header.
const REQUESTS: &str = "\
inpost GET /v1/tracking/{number} authorization: Bearer {secret}
dhl GET /track/shipments?trackingNumber={number}&language=en&service=parcel-pl dhl-api-key: {secret}
poczta_polska POST /token content-type: application/json
poczta_polska GET /uss/v2.0/tracking/checkmailex?number={number}&language=PL&states=true api_key: {token}
dpd POST /DPDInfoServicesObjEventsService/DPDInfoServicesObjEvents soapaction: \"\"
gls POST /token authorization: Basic {pair}
gls GET /track-and-trace-v1/tracking/simple/trackids/{number}?showEvents=true authorization: Bearer {token}
ups POST /token authorization: Basic {pair}
ups GET /api/track/v1/details/{number}?locale=pl_PL authorization: Bearer {token}
fedex POST /token content-type: application/x-www-form-urlencoded
fedex POST /track/v1/trackingnumbers authorization: Bearer {token}";

#[tokio::test]
async fn each_carrier_gets_its_methods_targets_headers_and_bodies() {
    let pair = STANDARD.encode(format!("{LOGIN}:{SECRET}"));
    let filled = [
        ("number", NUMBER),
        ("secret", SECRET),
        ("token", "access3token-1"),
        ("pair", &pair),
    ];
    let expected = filled.iter().fold(REQUESTS.to_owned(), |text, (name, value)| {
        text.replace(&format!("{{{name}}}"), value)
    });
    let mut expected = expected.lines();
    for carrier in CARRIERS {
        let world = World::new(carrier).await;
        world.finds().await;
        let requests = [world.token_requests(), world.requests()].concat();
        for request in &requests {
            let line = expected.next().unwrap();
            let name = line.split(' ').nth(3).unwrap().trim_end_matches(':');
            let start = request.request_line.trim_end_matches(" HTTP/1.1");
            let value = request.header(name);
            assert_eq!(format!("{} {start} {name}: {value}", carrier.as_str()), line);
            assert_eq!(request.header("user-agent"), "Tests/1.0 (+https://tests.example)");
        }
        let text = |n: usize| String::from_utf8(requests[n].body.clone()).unwrap();
        let json = |n: usize| serde_json::from_str::<Value>(&text(n)).unwrap();
        match carrier {
            Carrier::PocztaPolska => {
                assert_eq!(
                    json(0),
                    json!({"login": LOGIN, "password": SECRET, "language": "PL"})
                );
            }
            Carrier::Gls | Carrier::Ups => assert_eq!(text(0), "grant_type=client_credentials"),
            Carrier::Fedex => {
                let form = format!("grant_type=client_credentials&client_id={LOGIN}&client_secret={SECRET}");
                assert_eq!(text(0), form);
                let info = json!({"trackingNumberInfo": {"trackingNumber": NUMBER}});
                assert_eq!(
                    json(1),
                    json!({"includeDetailedScans": true, "trackingInfo": [info]})
                );
            }
            Carrier::Dpd => {
                assert!(requests[0].header("content-type").starts_with("text/xml"));
                for part in [
                    "http://events.dpdinfoservices.dpd.com.pl/",
                    &format!("<waybill>{NUMBER}</waybill>"),
                    "<eventsSelectType>ALL</eventsSelectType>",
                    &format!(
                        "<channel>channel1</channel><login>{LOGIN}</login><password>{SECRET}</password>"
                    ),
                ] {
                    assert!(text(0).contains(part), "{part}");
                }
            }
            _ => assert_eq!(text(0), ""),
        }
    }
    assert_eq!(expected.next(), None);
}

#[tokio::test]
async fn inpost_works_without_a_token_and_behind_a_path() {
    let world = World::new(Carrier::Inpost).await;
    let url = format!("{}/behind/a/proxy/", world.url);
    let mut settings = world::settings(Carrier::Inpost, &url, DEADLINE);
    settings.accounts[0].secret = "".into();
    let carriers = Carriers::new(&settings, clock()).unwrap();
    // No credentials were wrong.
    world.replies([
        world::reply(401, "{}"),
        crate::fixtures::delivered(Carrier::Inpost),
    ]);
    let lookup = carriers.look_up(Carrier::Inpost, &number()).await;
    assert!(matches!(lookup, Lookup::Unavailable(_)), "{lookup:?}");
    let lookup = carriers.look_up(Carrier::Inpost, &number()).await;
    assert!(matches!(lookup, Lookup::Found(_)), "{lookup:?}");
    let request = world.requests().remove(0);
    assert_eq!(request.target(), format!("/behind/a/proxy/v1/tracking/{NUMBER}"));
    assert!(!request.headers.iter().any(|(name, _)| name == "authorization"));
}

#[tokio::test]
async fn ups_requests_have_different_ids() {
    let world = World::new(Carrier::Ups).await;
    world.finds().await;
    world.finds().await;
    let requests = world.requests();
    assert_ne!(requests[0].header("transid"), requests[1].header("transid"));
    assert_eq!(requests[0].header("transactionsrc"), "tracking");
}

#[tokio::test]
async fn a_carrier_that_is_not_configured_is_not_queried() {
    let world = World::new(Carrier::Gls).await;
    for carrier in [Carrier::Dhl, Carrier::Other] {
        assert_eq!(
            world.carriers.look_up(carrier, &number()).await,
            Lookup::NotConfigured
        );
    }
    assert_eq!(world.counts(), (0, 0));
}
