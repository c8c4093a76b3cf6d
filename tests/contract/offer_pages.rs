//! Pages of `GET /v1/offers`: to the end, without a gap, whatever happens in between.

use blackbox::{World, number_of, offer_line};
use serde_json::{Value, json};

use crate::world;

/// A seller with offers 1 to `count` of one import, in which every third is a draft.
async fn catalogue(count: usize) -> (World, blackbox::Seller, String) {
    let world = world().await;
    let (seller, token) = world.reader().await;
    let status = |n: usize| if n.is_multiple_of(3) { "draft" } else { "published" };
    let lines: Vec<_> = (1..=count)
        .map(|n| offer_line(n, json!({"status": status(n)})))
        .collect();
    world.import(&seller, lines.join("\n")).await.expect(200);
    (world, seller, token)
}

async fn page(world: &World, token: &str, query: &str, after: Option<&Value>) -> Value {
    let after = after
        .map(|cursor| format!("&after={}", cursor.as_str().expect("a cursor")))
        .unwrap_or_default();
    world
        .get(token, &format!("/v1/offers?{query}{after}"))
        .await
        .expect(200)
        .json()
}

fn numbers(page: &Value) -> Vec<usize> {
    page["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|offer| number_of(&offer["id"]))
        .collect()
}

/// All pages of a list, each with its numbers.
async fn pages(world: &World, token: &str, query: &str) -> Vec<Vec<usize>> {
    let mut read = vec![page(world, token, query, None).await];
    while let Some(next) = read
        .last()
        .map(|page| &page["next"])
        .filter(|next| !next.is_null())
    {
        let following = page(world, token, query, Some(next)).await;
        read.push(following);
    }
    read.iter().map(numbers).collect()
}

#[tokio::test]
async fn all_pages_together_are_the_list_and_the_last_is_never_empty() {
    let (world, _, token) = catalogue(12).await;
    let all: Vec<_> = (1..=12).rev().collect();
    for limit in 1..=13 {
        let pages = pages(&world, &token, &format!("limit={limit}")).await;
        assert_eq!(
            pages,
            all.chunks(limit).map(<[usize]>::to_vec).collect::<Vec<_>>()
        );
    }
    let drafts: Vec<_> = pages(&world, &token, "limit=2&status=draft").await;
    assert_eq!(drafts, [[12, 9], [6, 3]]);
    let recent = pages(
        &world,
        &token,
        "limit=5&updated_after=2000-01-01T00:00:00Z&status=published",
    )
    .await;
    assert_eq!(recent, [vec![11, 10, 8, 7, 5], vec![4, 2, 1]]);
}

#[tokio::test]
async fn an_empty_list_is_one_page() {
    let world = world().await;
    let (_, token) = world.reader().await;
    let empty = json!({"items": [], "next": null});
    assert_eq!(
        world.get(&token, "/v1/offers?limit=1").await.expect(200).json(),
        empty
    );
}

#[tokio::test]
async fn limit_and_fields_may_change_between_pages() {
    let (world, _, token) = catalogue(10).await;
    let first = page(&world, &token, "limit=2&fields=title", None).await;
    let second = page(&world, &token, "limit=3", Some(&first["next"])).await;
    let third = page(&world, &token, "fields=stock,price", Some(&second["next"])).await;
    assert_eq!([numbers(&first), numbers(&second)], [vec![10, 9], vec![8, 7, 6]]);
    assert_eq!(
        (numbers(&third), &third["next"]),
        (vec![5, 4, 3, 2, 1], &Value::Null)
    );
    assert_eq!(first["items"][0].as_object().unwrap().len(), 2);
    assert_eq!(second["items"][0].as_object().unwrap().len(), 13);
    // The same cursor gives the same page again.
    assert_eq!(
        page(&world, &token, "limit=3", Some(&first["next"])).await["items"],
        second["items"]
    );
}

#[tokio::test]
async fn what_is_new_or_changed_meanwhile_neither_repeats_nor_hides_an_offer() {
    let (world, seller, token) = catalogue(6).await;
    let first = page(&world, &token, "limit=2", None).await;
    assert_eq!(numbers(&first), [6, 5]);
    world.offer(&seller, 7, json!({})).await;
    world.offer(&seller, 5, json!({"stock": 1})).await;
    world.offer(&seller, 1, json!({"stock": 1})).await;
    let second = page(&world, &token, "limit=2", Some(&first["next"])).await;
    assert_eq!(numbers(&second), [4, 3]);
    assert_eq!(
        numbers(&page(&world, &token, "limit=2", Some(&second["next"])).await),
        [2, 1]
    );
}

#[tokio::test]
async fn a_page_at_the_very_end_of_a_list_that_grew_is_not_empty_either() {
    let (world, _, token) = catalogue(4).await;
    let first = page(&world, &token, "limit=2", None).await;
    let second = page(&world, &token, "limit=2", Some(&first["next"])).await;
    assert_eq!((numbers(&second), &second["next"]), (vec![2, 1], &Value::Null));
}
