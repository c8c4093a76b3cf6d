//! Webhook deliveries.

use std::time::Duration;

use actix_web::http::StatusCode;
use chrono::TimeDelta;
use oauth::Action;
use uuid::Uuid;
use webhooks::{Attempted, DeliveryState, Failure, Outcome};

use super::browser::{Answered, Browser};
use super::receivers::{delivery, subscribe};
use super::world::Shared;

const PAGE: &str = "/panel/deliveries";

fn ended(outcome: Outcome) -> Attempted {
    Attempted {
        outcome,
        duration: Duration::from_millis(41),
    }
}

fn exhausted(failure: Failure) -> DeliveryState {
    DeliveryState::Exhausted {
        last: ended(Outcome::Failed(failure)),
    }
}

/// A delivery that waits for its third attempt.
fn waiting(world: &Shared) -> DeliveryState {
    DeliveryState::Waiting {
        attempt: 2,
        last: ended(Outcome::Answered(503)),
        due_at: world.get().now + TimeDelta::minutes(5),
    }
}

fn delivered(world: &Shared) -> DeliveryState {
    DeliveryState::Delivered {
        attempt: 1,
        last: ended(Outcome::Answered(204)),
        at: world.get().now,
    }
}

/// Presses the button of the form that leads there, as the page shows it.
async fn press(browser: &Browser, page: &Answered, action: &str) -> Answered {
    let form = format!("<form method=\"post\" action=\"{action}\">");
    let (_, rest) = page.text.split_once(&form).unwrap_or_else(|| {
        panic!("{action} is not in {}", page.text);
    });
    let form = rest.split("</form>").next().unwrap();
    let mut fields = Vec::new();
    for field in form.split("<input type=\"hidden\" name=\"").skip(1) {
        let mut parts = field.split('"');
        let name = parts.next().unwrap();
        fields.push((name, parts.nth(1).unwrap()));
    }
    browser.post(action, &fields).await
}

fn assert_has(page: &Answered, texts: &[&str]) {
    for text in texts {
        assert!(page.text.contains(text), "{text} is not in {}", page.text);
    }
}

#[actix_web::test]
async fn subscriptions_and_what_became_of_deliveries_are_shown() {
    let world = Shared::new();
    let to = subscribe(&world, 1, 1, true);
    let state = waiting(&world);
    delivery(&world, 1, to, 1, state);
    let state = delivered(&world);
    delivery(&world, 1, to, 2, state);
    delivery(&world, 1, to, 3, DeliveryState::Queued);
    let browser = Browser::signed_in(&world).await;
    let page = browser.get(PAGE).await;
    assert_has(
        &page,
        &[
            "Stock &#60;Sync&#62; 1",
            "https://hooks1.example/in",
            "<code>order.paid</code>",
            ">Active</span>",
            "2 of 6",
            "41 ms",
            "status 503. Only 2xx",
            "<time datetime=\"2023-11-14T22:18:20Z\">2023-11-14 22:18 UTC</time>",
            "status 204.",
            "<span class=\"tag queued\">Queued</span>",
            "<a href=\"/panel/deliveries\" aria-current=\"page\">",
        ],
    );
    assert!(!page.text.contains("ps_wh_"), "{}", page.text);
    assert_eq!(page.text.matches(">Deliver again</button>").count(), 3);
}

#[actix_web::test]
async fn the_last_error_is_explained_in_both_languages() {
    let world = Shared::new();
    let to = subscribe(&world, 1, 1, true);
    for (n, failure) in [
        (1, Failure::Dns),
        (2, Failure::Refused),
        (3, Failure::tls("certificate expired")),
        (4, Failure::TimedOut),
        (5, Failure::AddressRefused),
    ] {
        delivery(&world, 1, to, n, exhausted(failure));
    }
    let browser = Browser::signed_in(&world).await;
    assert_has(
        &browser.get(PAGE).await,
        &[
            "name does not resolve (DNS).",
            "refused the connection.",
            "(TLS): <code lang=\"en\">certificate expired</code>",
            "There was no answer in time.",
            "an address that deliveries do not go to",
            ">Given up</span>",
        ],
    );
    assert_has(
        &browser.get(&format!("{PAGE}?lang=pl")).await,
        &[
            "Nie można ustalić adresu hosta (DNS).",
            "Host odrzucił połączenie.",
            "(TLS): <code lang=\"en\">certificate expired</code>",
            "Nie było odpowiedzi na czas.",
            "Host ma adres, na który nie wysyłamy",
            ">Dostarcz ponownie</button>",
        ],
    );
}

#[actix_web::test]
async fn deliveries_are_filtered_by_subscription_and_by_failure() {
    let world = Shared::new();
    let (one, two) = (subscribe(&world, 1, 1, true), subscribe(&world, 1, 2, true));
    let failed = delivery(&world, 1, one, 1, exhausted(Failure::Closed));
    let state = delivered(&world);
    let fine = delivery(&world, 1, one, 2, state);
    let other = delivery(&world, 1, two, 3, DeliveryState::Queued);
    let browser = Browser::signed_in(&world).await;
    for (query, expected) in [
        ("?subscription=".to_owned(), [true, true, true]),
        (format!("?subscription={one}"), [true, true, false]),
        ("?failed=1".to_owned(), [true, false, false]),
        (format!("?subscription={two}&failed=1"), [false, false, false]),
    ] {
        let page = browser.get(&format!("{PAGE}{query}")).await.text;
        let shown = [failed, fine, other].map(|id| page.contains(&format!("<code>{id}</code>")));
        assert_eq!(shown, expected, "{query}");
        assert_eq!(page.contains("value=\"1\" checked"), query.contains("failed"));
        let chosen = query.contains(&one.to_string()) || query.contains(&two.to_string());
        assert_eq!(page.matches(" selected>").count(), usize::from(chosen));
    }
    let page = browser.get(&format!("{PAGE}?subscription={two}&failed=1")).await;
    assert_has(
        &page,
        &[
            "There are no such deliveries.",
            &format!("<option value=\"{two}\" selected>"),
        ],
    );
}

#[actix_web::test]
async fn a_delivery_is_repeated_once_for_each_form_and_the_filter_stays() {
    let world = Shared::new();
    let to = subscribe(&world, 1, 1, true);
    let id = delivery(&world, 1, to, 1, exhausted(Failure::Dns));
    let browser = Browser::signed_in(&world).await;
    let page = browser.get(&format!("{PAGE}?subscription={to}&failed=1")).await;
    let action = format!("{PAGE}/{id}/again");
    let location = format!("{PAGE}?subscription={to}&failed=1&done=redelivered");
    assert_eq!(press(&browser, &page, &action).await.location(), location);
    assert_eq!(press(&browser, &page, &action).await.location(), location);
    let told = browser.get(&location).await;
    assert_has(
        &told,
        &["<p class=\"notice\" role=\"status\">The event is queued again"],
    );
    {
        let world = world.get();
        assert_eq!(world.deliveries.len(), 2);
        let again = &world.deliveries[0].1;
        assert_eq!(
            (again.subscription, &again.delivery.state),
            (to, &DeliveryState::Queued)
        );
        assert_ne!(again.delivery.id, id);
        let (action, _, subject) = world.notes.last().unwrap();
        assert_eq!((*action, subject), (Action::Redelivered, &id.to_string()));
    }
    press(&browser, &told, &action).await;
    assert_eq!(world.get().deliveries.len(), 3);
}

#[actix_web::test]
async fn a_test_event_is_sent_and_noted() {
    let world = Shared::new();
    let to = subscribe(&world, 1, 1, true);
    let browser = Browser::signed_in(&world).await;
    let page = browser.get(PAGE).await;
    assert_has(&page, &["Nothing has been sent yet."]);
    let sent = press(&browser, &page, &format!("{PAGE}/{to}/test")).await;
    assert_eq!(sent.location(), "/panel/deliveries?done=test-event-sent");
    let world = world.get();
    assert_eq!(world.deliveries.len(), 1);
    let (action, _, subject) = world.notes.last().unwrap();
    assert_eq!((*action, subject), (Action::TestEventSent, &to.to_string()));
}

#[actix_web::test]
async fn one_too_many_in_a_minute_is_told_on_the_page_as_it_was_filtered() {
    let world = Shared::new();
    let to = subscribe(&world, 1, 1, true);
    let id = delivery(&world, 1, to, 1, exhausted(Failure::Dns));
    let browser = Browser::signed_in(&world).await;
    let page = browser.get(&format!("{PAGE}?failed=1")).await;
    world.get().places.1 = 31;
    for (action, word, text) in [
        (
            format!("{PAGE}/{to}/test"),
            "too-many-test-events",
            "a subscription gets at most 10 test events a minute.",
        ),
        (
            format!("{PAGE}/{id}/again"),
            "too-many-redeliveries",
            "at most 30 deliveries a minute are repeated to one subscription.",
        ),
    ] {
        let refused = press(&browser, &page, &action).await;
        let location = format!("{PAGE}?failed=1&done={word}");
        assert_eq!(refused.location(), location);
        let notice = format!("<p class=\"warning\" role=\"status\">Nothing was sent: {text}");
        assert_has(&browser.get(&location).await, &[&notice]);
    }
    assert!(
        world
            .noted()
            .iter()
            .all(|action| { !matches!(action, Action::TestEventSent | Action::Redelivered) })
    );
}

#[actix_web::test]
async fn a_stopped_subscription_gets_nothing() {
    let world = Shared::new();
    let to = subscribe(&world, 1, 1, true);
    let id = delivery(&world, 1, to, 1, exhausted(Failure::Dns));
    let browser = Browser::signed_in(&world).await;
    let open = browser.get(PAGE).await;
    world.get().subscriptions[0].1.subscription.active = false;
    let stopped = browser.get(PAGE).await;
    assert_has(&stopped, &[">Stopped</span>", "The application was disconnected"]);
    for button in ["Deliver again</button>", "Send a test event</button>"] {
        assert!(!stopped.text.contains(button), "{}", stopped.text);
    }
    for action in [format!("{PAGE}/{id}/again"), format!("{PAGE}/{to}/test")] {
        let refused = press(&browser, &open, &action).await;
        assert_eq!(refused.location(), "/panel/deliveries?done=nothing-sent");
    }
    let told = browser.get("/panel/deliveries?done=nothing-sent").await;
    assert_has(&told, &["<p class=\"warning\" role=\"status\">Nothing was sent"]);
    assert_eq!(world.get().deliveries.len(), 1);
    assert!(!world.noted().contains(&Action::Redelivered));
}

#[actix_web::test]
async fn another_sellers_are_neither_seen_nor_sent() {
    let world = Shared::new();
    let (own, others) = (subscribe(&world, 1, 1, true), subscribe(&world, 2, 2, true));
    let id = delivery(&world, 2, others, 1, exhausted(Failure::Dns));
    let browser = Browser::signed_in(&world).await;
    let page = browser.get(PAGE).await.text;
    assert!(
        !page.contains(&others.to_string()) && !page.contains(&id.to_string()),
        "{page}"
    );
    for query in [format!("?subscription={others}"), "?subscription=x".to_owned()] {
        let page = browser.get(&format!("{PAGE}{query}")).await;
        assert_eq!(page.status, StatusCode::NOT_FOUND, "{query}");
    }
    for (n, (action, to)) in [
        (format!("{PAGE}/{id}/again"), others),
        (format!("{PAGE}/{id}/again"), own),
        (format!("{PAGE}/{others}/test"), others),
        (format!("{PAGE}/x/test"), own),
    ]
    .into_iter()
    .enumerate()
    {
        let number = Uuid::from_u128(n.try_into().unwrap()).to_string();
        let fields = [("form", number.as_str()), ("subscription", &to.to_string())];
        let refused = browser.submit(&action, &fields).await;
        assert_eq!(refused.status, StatusCode::NOT_FOUND, "{action}");
    }
    assert_eq!(world.get().deliveries.len(), 1);
}

#[actix_web::test]
async fn a_form_without_token_or_number_does_nothing() {
    let world = Shared::new();
    let to = subscribe(&world, 1, 1, true);
    let browser = Browser::signed_in(&world).await;
    let action = format!("{PAGE}/{to}/test");
    let forged = browser.post(&action, &[("form", "x")]).await;
    assert_eq!(forged.status, StatusCode::FORBIDDEN);
    let numberless = browser.submit(&action, &[]).await;
    assert_eq!(numberless.status, StatusCode::BAD_REQUEST);
    assert!(world.get().deliveries.is_empty());
}

#[actix_web::test]
async fn without_subscriptions_there_is_nothing_to_filter() {
    let world = Shared::new();
    let browser = Browser::signed_in(&world).await;
    let page = browser.get(PAGE).await;
    assert_has(&page, &["No application has subscribed"]);
    assert!(!page.text.contains("<select"), "{}", page.text);
}
