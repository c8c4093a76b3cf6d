//! `GET /v1/orders`

use chrono::TimeDelta;
use kernel::{Keyset, Page, PageSize};
use orders::{OrderFilter, OrderStatus};
use uuid::Uuid;

use super::fixture::{Answered, Fixture, now, principal};
use super::trade::{shipped, unpaid};

/// Reads a page, of which the store is asked for exactly this.
async fn list(query: &str, filter: OrderFilter, after: Option<Keyset>, next: Option<Keyset>) -> Answered {
    let mut fixture = Fixture::admitting(principal());
    fixture
        .orders
        .expect_orders()
        .once()
        .withf(move |seller, given_filter, given_after, size| {
            let asked = (*seller, *given_filter, *given_after, *size);
            asked == (principal().seller, filter, after, PageSize::clamped(2))
        })
        .returning(move |_, _, _, _| {
            Ok(Page {
                items: vec![shipped(), unpaid()],
                next,
            })
        });
    fixture.get(&format!("/v1/orders?limit=2&{query}")).await
}

fn position() -> Keyset {
    Keyset {
        at: now() + TimeDelta::microseconds(17),
        id: Uuid::from_u128(99),
    }
}

#[actix_web::test]
async fn a_page_with_chosen_fields() {
    let answered = list("fields=status,buyer", OrderFilter::default(), None, None).await;
    insta::assert_snapshot!(answered.text(), @r#"{"items":[{"id":"0197a5c4-0000-7000-8000-00000000000d","status":"shipped","buyer":{"name":"Ewa Żak","email":"ewa@example.com","phone":null}},{"id":"0197a5c4-0000-7000-8000-00000000000d","status":"pending","buyer":null}],"next":null}"#);
}

#[actix_web::test]
async fn whole_orders_are_the_same_as_alone() {
    let listed = list("", OrderFilter::default(), None, None).await.json();
    let mut fixture = Fixture::admitting(principal());
    fixture
        .orders
        .expect_order()
        .returning(|_, _| Ok(Some(shipped())));
    let alone = fixture.get("/v1/orders/PL-2026-17").await.json();
    assert_eq!(listed["items"][0], alone);
}

#[actix_web::test]
async fn filters_reach_the_store() {
    for status in OrderStatus::ALL {
        let filter = OrderFilter {
            status: Some(status),
            placed_after: Some(now()),
            updated_after: Some(now() + TimeDelta::microseconds(1)),
        };
        let query = format!(
            "status={}&placed_after=2023-11-14T23:13:20%2B01:00&updated_after=2023-11-14T22:13:20.000001Z",
            status.as_str()
        );
        assert_eq!(list(&query, filter, None, None).await.status, 200);
    }
}

#[actix_web::test]
async fn a_cursor_belongs_to_its_filters() {
    let filter = OrderFilter {
        status: Some(OrderStatus::Processing),
        placed_after: Some(now()),
        updated_after: None,
    };
    let filters = "status=processing&placed_after=2023-11-14T22:13:20Z";
    let first = list(filters, filter, None, Some(position())).await.json();
    let next = first["next"].as_str().unwrap();
    let again = format!("after={next}&{filters}&fields=id");
    let second = list(&again, filter, Some(position()), None).await;
    assert_eq!(second.json()["next"], serde_json::Value::Null);

    for query in [
        format!("/v1/orders?after={next}"),
        format!("/v1/orders?after={next}&status=processing"),
        format!("/v1/orders?after={next}&status=pending&placed_after=2023-11-14T22:13:20Z"),
        format!("/v1/orders?after={next}&status=processing&updated_after=2023-11-14T22:13:20Z"),
        format!("/v1/orders?after={next}x&{filters}"),
        format!("/v1/offers?after={next}"),
    ] {
        let answered = Fixture::admitting(principal()).get(&query).await;
        assert_eq!(answered.paths(), ["after"], "{query}");
    }
}

#[actix_web::test]
async fn everything_wrong_is_told_together_in_the_contracts_order() {
    for (query, paths) in [
        ("status=paid", vec!["status"]),
        ("status=draft", vec!["status"]),
        ("placed_after=2023-11-14", vec!["placed_after"]),
        ("fields=items.id", vec!["fields"]),
        (
            "x=1&updated_after=1&placed_after=1&status=x&fields=x&after=x&limit=x",
            vec![
                "limit",
                "after",
                "fields",
                "status",
                "placed_after",
                "updated_after",
                "x",
            ],
        ),
    ] {
        let answered = Fixture::admitting(principal())
            .get(&format!("/v1/orders?{query}"))
            .await;
        assert_eq!(answered.paths(), paths, "{query}");
    }
}

#[actix_web::test]
async fn an_empty_list_is_a_page() {
    let mut fixture = Fixture::admitting(principal());
    fixture.orders.expect_orders().returning(|_, _, _, _| {
        Ok(Page {
            items: Vec::new(),
            next: None,
        })
    });
    assert_eq!(
        fixture.get("/v1/orders").await.text(),
        r#"{"items":[],"next":null}"#
    );
}
