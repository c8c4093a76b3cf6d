//! The requests that carriers receive.

use adapter_carriers::{Carriers, DEADLINE};
use base64::{Engine, engine::general_purpose::STANDARD};
use orders::{Carrier, CarrierLookup, Lookup};
use serde_json::{Value, json};
use url::Url;

use crate::{
    stub::Seen,
    world::{self, CARRIERS, LOGIN, NUMBER, SECRET, World, found, number},
};

const TOKEN: &str = "access3token-1";

/// The single request for a parcel, and the one for its token.
async fn requests(carrier: Carrier) -> (Seen, Option<Seen>) {
    let world = World::new(carrier).await;
    found(world.ask().await);
    let (mut asked, mut tokens) = (world.stub.asked(), world.stub.token_requests());
    assert_eq!((asked.len(), tokens.len() <= 1), (1, true));
    (asked.remove(0), tokens.pop())
}

/// Carrier, method, target, and the authentication header.
const REQUESTS: &str = "\
inpost GET /v1/tracking/{number} authorization: Bearer {secret}
dhl GET /track/shipments?trackingNumber={number}&language=en&service=parcel-pl dhl-api-key: {secret}
poczta_polska GET /uss/v2.0/tracking/checkmailex?number={number}&language=PL&states=true api_key: {token}
dpd POST /DPDInfoServicesObjEventsService/DPDInfoServicesObjEvents soapaction: \"\"
gls GET /track-and-trace-v1/tracking/simple/trackids/{number}?showEvents=true authorization: Bearer {token}
ups GET /api/track/v1/details/{number}?locale=pl_PL authorization: Bearer {token}
fedex POST /track/v1/trackingnumbers authorization: Bearer {token}";

#[tokio::test]
async fn each_carrier_gets_its_method_target_and_key() {
    for (line, carrier) in REQUESTS.lines().zip(CARRIERS) {
        let line = line
            .replace("{number}", NUMBER)
            .replace("{secret}", SECRET)
            .replace("{token}", TOKEN);
        let (seen, _) = requests(carrier).await;
        let (_, header) = line.split_once(": ").unwrap();
        let name = line.split(' ').nth(3).unwrap().trim_end_matches(':');
        let expected = format!(
            "{} {} {} {name}: {header}",
            carrier.as_str(),
            seen.method,
            seen.target
        );
        assert_eq!(line, expected);
        assert_eq!(seen.headers[name], header, "{carrier:?}");
        assert_eq!(seen.headers["user-agent"], "Tests/1.0 (+https://tests.example)");
    }
}

#[tokio::test]
async fn bodies_hold_number_and_credentials() {
    let (fedex, _) = requests(Carrier::Fedex).await;
    let info = json!({"trackingNumberInfo": {"trackingNumber": NUMBER}});
    let expected = json!({"includeDetailedScans": true, "trackingInfo": [info]});
    assert_eq!(serde_json::from_str::<Value>(&fedex.body).unwrap(), expected);

    let (dpd, _) = requests(Carrier::Dpd).await;
    assert!(dpd.headers["content-type"].starts_with("text/xml"));
    for part in [
        "http://events.dpdinfoservices.dpd.com.pl/",
        &format!("<waybill>{NUMBER}</waybill>"),
        "<eventsSelectType>ALL</eventsSelectType>",
        &format!("<channel>channel1</channel><login>{LOGIN}</login><password>{SECRET}</password>"),
    ] {
        assert!(dpd.body.contains(part), "{part}");
    }
}

#[tokio::test]
async fn token_requests_carry_the_credentials() {
    for carrier in [Carrier::Gls, Carrier::Ups] {
        let token = requests(carrier).await.1.unwrap();
        let pair = STANDARD.encode(format!("{LOGIN}:{SECRET}"));
        assert_eq!(token.headers["authorization"], format!("Basic {pair}"));
        assert_eq!(token.headers["content-type"], "application/x-www-form-urlencoded");
        assert_eq!(
            (&*token.method, &*token.body),
            ("POST", "grant_type=client_credentials")
        );
    }
    let fedex = requests(Carrier::Fedex).await.1.unwrap();
    let form = format!("grant_type=client_credentials&client_id={LOGIN}&client_secret={SECRET}");
    assert_eq!((&*fedex.method, fedex.body), ("POST", form));
    let poczta = requests(Carrier::PocztaPolska).await.1.unwrap();
    assert_eq!(poczta.headers["content-type"], "application/json");
    let login = json!({"login": LOGIN, "password": SECRET, "language": "PL"});
    assert_eq!(serde_json::from_str::<Value>(&poczta.body).unwrap(), login);
}

#[tokio::test]
async fn inpost_works_without_a_token_and_behind_a_path() {
    let world = World::new(Carrier::Inpost).await;
    let url = Url::parse(&format!("http://{}/behind/a/proxy/", world.stub.address)).unwrap();
    let mut settings = world::settings(Carrier::Inpost, &url, DEADLINE);
    settings.accounts[0].secret = "".into();
    let carriers = Carriers::new(&settings, World::clock()).unwrap();
    found(carriers.look_up(Carrier::Inpost, &number()).await);
    let seen = world.stub.asked().remove(0);
    assert_eq!(seen.target, format!("/behind/a/proxy/v1/tracking/{NUMBER}"));
    assert!(!seen.headers.contains_key("authorization"));
}

#[tokio::test]
async fn ups_requests_have_different_ids() {
    let world = World::new(Carrier::Ups).await;
    world.ask().await;
    world.ask().await;
    let asked = world.stub.asked();
    assert_ne!(asked[0].headers["transid"], asked[1].headers["transid"]);
    assert!(asked[0].headers.contains_key("transactionsrc"));
}

#[tokio::test]
async fn a_carrier_that_is_not_configured_is_not_asked() {
    for configured in CARRIERS {
        let world = World::new(configured).await;
        assert_eq!(world.carriers.configured().collect::<Vec<_>>(), [configured]);
        for carrier in Carrier::ALL.into_iter().filter(|carrier| *carrier != configured) {
            let lookup = world.carriers.look_up(carrier, &number()).await;
            assert!(matches!(lookup, Lookup::Unavailable(reason) if reason.starts_with("not asked")));
        }
        assert_eq!(world.requests(), (0, 0));
    }
}
