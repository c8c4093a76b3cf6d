//! Which rows the timeline gets.

use accounts::{LinkKind, MockAccountReader, Seller};
use actix_web::HttpRequest;
use actix_web::http::StatusCode;
use actix_web::test::TestRequest;
use actix_web::web::Bytes;
use changes::{ChangeKind, ChangePage, MockChangeReader};
use kernel::Money;
use uuid::Uuid;
use web::TraceId;
use web::access_log::{CallerIds, LoggedRefusal};
use webhooks::{
    AddressPolicy, AttemptFailure, Event, JournalPage, JournalRefusal, MockJournalReader, Subject,
    WebhookSecret,
};

use super::*;

const OFFER: &str = "0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e";
const SELLER: &str = "0197a5c4-8b1e-7c3a-9d2f-000000000001";
const ORDER: &str = "0197a5c4-8b1e-7c3a-9d2f-000000000002";

fn now() -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::hours(1)
}

fn line<'a>(listener: &'static str, request: &'a HttpRequest, route: &'a str, status: u16) -> AccessLine<'a> {
    static TRACE: std::sync::LazyLock<TraceId> = std::sync::LazyLock::new(|| TraceId::from_random([7; 16]));
    AccessLine {
        listener,
        trace_id: &TRACE,
        client_address: std::net::Ipv4Addr::LOCALHOST.into(),
        caller: CallerIds::default(),
        request,
        route,
        status: StatusCode::from_u16(status).unwrap(),
        refusal: None,
        duration: Duration::from_millis(12),
    }
}

fn bodies(request: &str, response: &str) -> Bodies {
    Bodies {
        request: Bytes::copy_from_slice(request.as_bytes()),
        response: Bytes::copy_from_slice(response.as_bytes()),
    }
}

#[test]
fn a_request_of_an_application() {
    let http = TestRequest::patch()
        .uri(&format!("/v1/offers/{OFFER}?fields=id"))
        .to_http_request();
    let client_id = Uuid::from_u128(1).into();
    let caller = CallerIds {
        client_id: Some(client_id),
        seller: Some(SELLER.parse().unwrap()),
        ..CallerIds::default()
    };
    let refusal = Some(LoggedRefusal {
        error: "conflict",
        reason: None,
    });
    let line = line("api", &http, "/v1/offers/{id}", 200);
    let row = request(
        &AccessLine { caller, ..line },
        &bodies("{}", &format!(r#"{{"id":"{OFFER}"}}"#)),
        now(),
    );
    assert_eq!(row.title, format!("PATCH /v1/offers/{OFFER}?fields=id"));
    assert_eq!(
        (row.outcome.as_str(), row.is_write, row.failed),
        ("200 in 12 ms", true, false)
    );
    assert_eq!(row.ids, [OFFER]);
    assert_eq!(row.application, Some(client_id.to_string()));
    assert_eq!(row.seller, Some(SELLER.parse().unwrap()));
    assert_eq!(now() - row.at, TimeDelta::milliseconds(12));
    assert_eq!(row.caused_at, row.at);
    let status = StatusCode::CONFLICT;
    let row = request(
        &AccessLine {
            status,
            refusal,
            ..line
        },
        &bodies("{}", "{}"),
        now(),
    );
    assert_eq!(
        (row.outcome.as_str(), row.is_write, row.failed),
        ("409 conflict in 12 ms", false, true)
    );
}

#[test]
fn a_request_of_the_marketplace_and_a_batch() {
    let path = format!("/sellers/{SELLER}/offers/{OFFER}/moderation");
    let http = TestRequest::post().uri(&path).to_http_request();
    let moderation = line(
        "backoffice",
        &http,
        "/sellers/{seller}/offers/{offer}/moderation",
        204,
    );
    let row = request(&moderation, &bodies(r#"{"status":"rejected"}"#, ""), now());
    assert_eq!(row.seller, Some(SELLER.parse().unwrap()));
    assert_eq!(row.ids, [SELLER, OFFER]);
    let http = TestRequest::post().uri("/orders").to_http_request();
    let answer = format!(r#"{{"order_id":"{ORDER}","order_number":"A-1"}}"#);
    let row = request(
        &line("backoffice", &http, "/orders", 201),
        &bodies("{}", &answer),
        now(),
    );
    assert_eq!(row.ids, [ORDER, "A-1"]);
    let http = TestRequest::post().uri("/v1/offers/batch").to_http_request();
    let batch = format!(r#"{{"items":[{{"id":"{OFFER}","stock":1}},{{"id":"{ORDER}"}}]}}"#);
    let row = request(
        &line("api", &http, "/v1/offers/batch", 200),
        &bodies(&batch, &batch),
        now(),
    );
    assert_eq!(row.ids, [OFFER, ORDER]);
    let path = format!("/sellers/{SELLER}/offers:import");
    let http = TestRequest::post().uri(&path).to_http_request();
    let lines = format!("{{\"id\":\"{OFFER}\"}}\n{{\"id\":\"{ORDER}\"}}\n");
    let import = line("backoffice", &http, "/sellers/{seller}/offers:import", 200);
    let row = request(&import, &bodies(&lines, ""), now());
    assert_eq!(row.ids, [SELLER, OFFER, ORDER]);
    // A list is about none of its items.
    let http = TestRequest::get().uri("/v1/offers").to_http_request();
    let row = request(&line("api", &http, "/v1/offers", 200), &bodies("", &batch), now());
    assert!(row.ids.is_empty() && !row.is_write);
}

#[test]
fn of_the_panel_neither_addresses_nor_forms_are_kept() {
    let http = TestRequest::post()
        .uri("/panel/sign-in/s3cr3t?request=s3cr3t")
        .to_http_request();
    let line = line("panel", &http, "/panel/sign-in/{secret}", 303);
    let row = request(&line, &bodies("email=a&password=s3cr3t", "<p>s3cr3t</p>"), now());
    assert_eq!(row.title, "POST /panel/sign-in/{secret}");
    assert!(!format!("{row:?}").contains("s3cr3t"), "{row:?}");
}

#[test]
fn what_the_page_itself_loads_is_left_out() {
    let observing = Observing::default();
    for path in [
        "/sandbox",
        "/sandbox/live",
        "/docs/guide",
        "/panel/assets/a.css",
        "/favicon.ico",
        "/",
    ] {
        let http = TestRequest::get().uri(path).to_http_request();
        observing.request(&line("api", &http, "-", 200), &Bodies::default());
    }
    assert_eq!(
        format!("{:?}", observing.timeline),
        format!("{:?}", Timeline::default())
    );
}

#[test]
fn an_attempt_belongs_to_its_event() {
    let order = Subject::Order {
        order_id: ORDER.parse().unwrap(),
        order_number: "A-1".to_owned(),
    };
    let (delivery, subscription) = (Uuid::from_u128(3), Uuid::from_u128(4));
    let event = Event::recorded(SELLER.parse().unwrap(), WebhookEvent::OrderPaid, order);
    let body = event
        .body(delivery.into(), Uuid::from_u128(5).into(), now())
        .unwrap();
    let message = Message {
        application: Uuid::nil().into(),
        due_at: now(),
        subscription: subscription.into(),
        delivery: delivery.into(),
        event: WebhookEvent::OrderPaid,
        url: WebhookUrl::parse("https://shop.example/hooks/2", AddressPolicy::Public).unwrap(),
        body: Arc::from(body),
        secrets: Arc::new(WebhookSecret::from_random(&[7; 32]).into()),
    };
    let attempted = |outcome| Attempted {
        outcome,
        duration: Duration::from_millis(7),
    };
    let row = attempt(
        &message,
        &attempted(Outcome::Answered(204)),
        now() + TimeDelta::hours(1),
    );
    assert_eq!(row.title, "order.paid → https://shop.example/hooks/2");
    assert_eq!((row.outcome.as_str(), row.failed), ("204 in 7 ms", false));
    assert_eq!(row.caused_at, now());
    assert_eq!(row.seller, Some(SELLER.parse().unwrap()));
    assert_eq!(row.ids, [ORDER, "A-1", &delivery.to_string()]);
    assert_eq!(row.delivery, Some(delivery.to_string()));
    let refused = Outcome::Failed(AttemptFailure::Refused);
    let row = attempt(&message, &attempted(refused), now());
    assert_eq!(
        (row.outcome.as_str(), row.failed),
        ("the host refused the connection in 7 ms", true)
    );
}

#[test]
fn a_mails_id_says_when_it_was_queued() {
    let id: Uuid = "0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e".parse().unwrap();
    let queued_at = queued_at(id.into()).unwrap();
    assert_eq!(queued_at.timestamp_millis(), 0x0197_a5c4_8b1e + 1);
    assert_eq!(super::queued_at(Uuid::from_u128(1).into()), None);
    assert_eq!(LinkKind::Invitation.as_str(), "invitation");
}

#[test]
fn a_change_says_the_new_value() {
    let item = ChangeItem {
        kind: ChangeKind::OfferPriceChanged,
        seller: SELLER.parse().unwrap(),
        topic: Topic::Offer(OFFER.parse().unwrap()),
        detail: Detail::Price(Money::pln(12_905).unwrap()),
        at: now(),
    };
    let row = change(&item);
    assert_eq!(
        (row.title.as_str(), row.outcome.as_str()),
        ("offer.price_changed", "129.05 PLN")
    );
    assert_eq!(row.ids, [OFFER]);
    let body: Value = serde_json::from_str(&row.body).unwrap();
    let expected = json!({
        "kind": "offer.price_changed", "seller_id": SELLER, "offer_id": OFFER, "at": now(),
        "price": { "amount": 12_905, "currency": "PLN" },
    });
    assert_eq!(body, expected);
}

/// The first look finds the ends, the next one what is new, and a failure loses nothing. A place that is refused
/// repeats nothing.
#[tokio::test]
async fn feeds_are_followed_from_now_on() {
    let seller: SellerId = SELLER.parse().unwrap();
    let late: SellerId = Uuid::from_u128(9).into();
    let mut journals = MockJournalReader::new();
    let mut last = 7;
    journals.expect_last_numbers().returning(move |_| {
        last += 1;
        if last == 9 {
            return Err(StoreError::unexpected("gone"));
        }
        Ok(HashMap::from([(seller, last), (late, 1)]))
    });
    let page = |number, events| JournalPage {
        events,
        place: JournalPlace {
            number,
            event: None,
            at: now(),
        },
        has_more: false,
    };
    journals
        .expect_page()
        .times(5)
        .returning(move |_, start, names, _| {
            let offer_id = OFFER.parse().unwrap();
            let found = || JournaledEvent {
                id: Uuid::nil().into(),
                event: Event::recorded(seller, WebhookEvent::OfferRejected, Subject::Offer { offer_id }),
                occurred_at: now(),
            };
            Ok(Ok(match start {
                JournalStart::Oldest if names.is_empty() => page(8, Vec::new()),
                JournalStart::Oldest => page(8, vec![found()]),
                JournalStart::After(place) if place.number == 10 => {
                    return Ok(Err(JournalRefusal::UnknownPlace));
                }
                JournalStart::After(place) => page(place.number + 2, vec![found()]),
                JournalStart::Since(_) => panic!("not asked for"),
            }))
        });
    let mut changes = MockChangeReader::new();
    changes.expect_changes().returning(|after, _| {
        let n = after.map_or(0, |cursor| cursor.0.parse().unwrap());
        let item = ChangeItem {
            kind: ChangeKind::OrderShipped,
            seller: SELLER.parse().unwrap(),
            topic: Topic::Order(ORDER.parse().unwrap()),
            detail: Detail::Nothing,
            at: now(),
        };
        // Something old; after the first look, something new.
        let items = if n == 1 || n >= 3 { Vec::new() } else { vec![item] };
        let next = ChangeCursor((n + 1).to_string());
        Ok(ChangePage { items, next })
    });
    let mut accounts = MockAccountReader::new();
    let mut looks = 0;
    accounts.expect_sellers().returning(move |_, _| {
        looks += 1;
        // The number of the second is lower, and committed later.
        let registered = |id, seller_no| Seller {
            id,
            seller_no,
            name: "Shop".to_owned(),
            email: "shop@shop.example".to_owned(),
            created_at: now(),
            closed_at: None,
        };
        let all = [registered(late, 1), registered(seller, 2)];
        Ok(all.into_iter().skip(usize::from(looks == 1)).collect())
    });
    let mut feeds = Feeds {
        journals: Arc::new(journals),
        changes: Arc::new(changes),
        timeline: Timeline::default(),
        accounts: Arc::new(accounts),
        sellers: watch::Sender::default(),
        places: HashMap::new(),
        cursor: None,
    };
    let empty = format!("{:?}", Timeline::default());
    feeds.look().await.unwrap();
    assert_eq!(format!("{:?}", feeds.timeline), empty);
    assert!(feeds.look().await.is_err());
    feeds.look().await.unwrap();
    feeds.look().await.unwrap();
    let kept = format!("{:?}", feeds.timeline);
    // One of each seller: the late one's journal is read from its beginning.
    assert_eq!(kept.matches("title: \"offer.rejected\"").count(), 2, "{kept}");
    assert_eq!(kept.matches("title: \"order.shipped\"").count(), 1, "{kept}");
    let known: Vec<_> = feeds.sellers.borrow().iter().map(|known| known.id).collect();
    assert_eq!(known, [seller.uuid(), late.uuid()]);
}
