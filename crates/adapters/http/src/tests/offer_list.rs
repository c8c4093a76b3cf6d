//! `GET /v1/offers`

use chrono::TimeDelta;
use kernel::{Keyset, Page, PageSize};
use offers::{OfferFilter, OfferStatus};
use uuid::Uuid;

use super::fixture::{Answered, Fixture, now, offer, principal};

/// Reads a page, of which the store is asked for exactly this.
async fn list(
    query: &str,
    filter: OfferFilter,
    after: Option<Keyset>,
    size: i64,
    next: Option<Keyset>,
) -> Answered {
    let mut fixture = Fixture::admitting(principal());
    fixture
        .offers
        .expect_offers()
        .once()
        .withf(move |seller, given_filter, given_after, given_size| {
            let asked = (*seller, *given_filter, *given_after, *given_size);
            asked == (principal().seller, filter, after, PageSize::clamped(size))
        })
        .returning(move |_, _, _, _| {
            Ok(Page {
                items: vec![offer()],
                next,
            })
        });
    fixture.get(&format!("/v1/offers?{query}")).await
}

fn position() -> Keyset {
    Keyset {
        at: now() + TimeDelta::microseconds(17),
        id: Uuid::from_u128(99),
    }
}

#[actix_web::test]
async fn a_page_at_the_end_of_the_list() {
    let answered = list("fields=id,title", OfferFilter::default(), None, 50, None).await;
    insta::assert_snapshot!(answered.text(), @r#"{"items":[{"id":"0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e","title":"Czajnik \"Żółw\""}],"next":null}"#);
}

#[actix_web::test]
async fn filters_reach_the_store() {
    let filter = OfferFilter {
        status: Some(OfferStatus::Rejected),
        updated_after: Some(now()),
    };
    let query = "status=rejected&updated_after=2023-11-14T23:13:20%2B01:00";
    assert_eq!(list(query, filter, None, 50, None).await.status, 200);
    let query = "status=rejected&updated_after=2023-11-14T23:13:20+01:00";
    assert_eq!(list(query, filter, None, 50, None).await.status, 200);
}

#[actix_web::test]
async fn any_integer_is_a_limit() {
    for (limit, size) in [
        ("1", 1),
        ("200", 200),
        ("201", 200),
        ("0", 1),
        ("-5", 1),
        ("007", 7),
        ("99999999999999999999999", 200),
        ("-99999999999999999999999", 1),
    ] {
        let answered = list(
            &format!("limit={limit}"),
            OfferFilter::default(),
            None,
            size,
            None,
        )
        .await;
        assert_eq!(answered.status, 200, "{limit}");
    }
}

#[actix_web::test]
async fn a_cursor_leads_on_and_lets_limit_and_fields_change() {
    let filter = OfferFilter {
        status: Some(OfferStatus::Draft),
        updated_after: None,
    };
    let first = list("status=draft&limit=1", filter, None, 1, Some(position()))
        .await
        .json();
    let next = first["next"].as_str().unwrap();
    let query = format!("after={next}&limit=7&fields=id&status=draft");
    let second = list(&query, filter, Some(position()), 7, None).await;
    assert_eq!(second.json()["next"], serde_json::Value::Null);

    for query in [
        format!("after={next}"),
        format!("after={next}&status=published"),
        format!("after={next}&status=draft&updated_after=2023-11-14T22:13:20Z"),
        format!("after={next}x&status=draft"),
        format!("after={}&status=draft", &next[1..]),
    ] {
        let answered = Fixture::admitting(principal())
            .get(&format!("/v1/offers?{query}"))
            .await;
        assert_eq!(answered.paths(), ["after"], "{query}");
    }
}

#[actix_web::test]
async fn another_sellers_cursor_is_none() {
    let first = list("", OfferFilter::default(), None, 50, Some(position()))
        .await
        .json();
    let next = first["next"].as_str().unwrap();
    let mut other = principal();
    other.seller = Uuid::from_u128(0xc).into();
    let answered = Fixture::admitting(other)
        .get(&format!("/v1/offers?after={next}"))
        .await;
    assert_eq!(answered.paths(), ["after"]);
}

#[actix_web::test]
async fn everything_wrong_is_told_together_in_the_contracts_order() {
    for (query, paths) in [
        ("limit=abc", vec!["limit"]),
        ("limit=", vec!["limit"]),
        ("limit=1.5", vec!["limit"]),
        ("limit=+5", vec!["limit"]),
        ("after=", vec!["after"]),
        ("after=!", vec!["after"]),
        ("fields=", vec!["fields"]),
        ("fields=price.amount", vec!["fields"]),
        ("fields=id,,title", vec!["fields"]),
        ("status=Draft", vec!["status"]),
        ("status=", vec!["status"]),
        ("updated_after=2023-11-14", vec!["updated_after"]),
        ("updated_after=2023-11-14T22:13:20", vec!["updated_after"]),
        ("status=draft&status=draft", vec!["status"]),
        ("placed_after=2023-11-14T22:13:20Z", vec!["placed_after"]),
        (
            "x=1&updated_after=1&status=x&fields=x&after=x&limit=x&a=2",
            vec!["limit", "after", "fields", "status", "updated_after", "x", "a"],
        ),
    ] {
        let answered = Fixture::admitting(principal())
            .get(&format!("/v1/offers?{query}"))
            .await;
        assert_eq!(answered.paths(), paths, "{query}");
    }
}
