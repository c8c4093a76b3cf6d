//! `GET /v1/offers`: order, filters, times, pages, and other query parameters.

use blackbox::{
    Expect, Seller, Wire, World, all_invalid, entry, ids, items, number_of, offer_id, offer_line, pages, text,
};
use chrono::TimeDelta;
use serde_json::{Value, json};

use crate::{instant, world};

fn numbers(list: &Value) -> Vec<usize> {
    items(list).iter().map(|offer| number_of(&offer["id"])).collect()
}

/// The numbers of the offers in a list.
async fn listed(world: &World, token: &str, query: &str) -> Vec<usize> {
    numbers(&world.read(token, &format!("/v1/offers?{query}")).await)
}

#[tokio::test]
async fn offers_are_listed_newest_first_and_then_by_descending_id() {
    let world = world().await;
    let clock = world.stop_clock("2040-01-01T12:00:00Z").await;
    let (seller, token) = world.reader().await;
    let lines = [5, 3, 9].map(|n| offer_line(n, json!({})));
    world.import(&seller, lines.join("\n")).await.expect(200);
    clock.advance(TimeDelta::microseconds(1000)).await;
    for n in [4, 8, 1] {
        world.offer(&seller, n, json!({})).await;
    }
    clock.advance(TimeDelta::seconds(-3600)).await;
    world.offer(&seller, 7, json!({})).await;
    assert_eq!(listed(&world, &token, "").await, [8, 4, 1, 9, 5, 3, 7]);
    // A change does not move an offer: the order is by creation.
    clock.advance(TimeDelta::seconds(7200)).await;
    world.offer(&seller, 7, json!({"stock": 1})).await;
    assert_eq!(listed(&world, &token, "").await, [8, 4, 1, 9, 5, 3, 7]);
}

#[tokio::test]
async fn filters_match_exactly_and_combine() {
    let world = world().await;
    let clock = world.stop_clock("2040-01-01T12:00:00Z").await;
    let (seller, token) = world.reader().await;
    for n in 1..=6 {
        let later = TimeDelta::microseconds(1_000_001 * i64::try_from(n - 1).unwrap());
        clock.freeze(instant("2040-01-01T12:00:00Z") + later).await;
        let status = ["proposed", "draft", "published"][n % 3];
        world.offer(&seller, n, json!({"status": status})).await;
    }
    world.offer(&seller, 6, json!({"status": "rejected"})).await;
    let after = "updated_after=2040-01-01T12:00";
    for (query, expected) in [
        ("status=draft".to_owned(), vec![4, 1]),
        ("status=published".to_owned(), vec![5, 2]),
        ("status=proposed".to_owned(), vec![3]),
        ("status=rejected".to_owned(), vec![6]),
        (format!("{after}:03.000003Z"), vec![6, 5]),
        (format!("{after}:03.000002Z"), vec![6, 5, 4]),
        (format!("status=draft&{after}:01.000001Z"), vec![4]),
    ] {
        assert_eq!(listed(&world, &token, &query).await, expected, "{query}");
    }
    // Offers up to that time are left out; an older offer comes again once it is changed.
    let read = world.read(&token, "/v1/offers?limit=2&fields=updated_at").await;
    let fifth = text(&read["items"][1], "updated_at");
    assert_eq!(fifth, "2040-01-01T12:00:04.000004Z");
    world.offer(&seller, 1, json!({"stock": 1})).await;
    let changed = listed(&world, &token, &format!("updated_after={fifth}")).await;
    assert_eq!(changed, [6, 1]);
}

#[tokio::test]
async fn updated_after_is_rfc_3339_with_an_offset() {
    let world = world().await;
    let clock = world.database.control_clock().await;
    let (seller, token) = world.reader().await;
    for (n, at) in [(1, "2040-01-01T12:00:00Z"), (2, "2040-01-01T12:00:01Z")] {
        clock.freeze(instant(at)).await;
        world.offer(&seller, n, json!({})).await;
    }
    let same = "12:00:00Z 12:00:00.0Z 12:00:00.000000Z 12:00:00%2B00:00 12:00:00-00:00 13:30:00%2B01:30 \
        07:00:00-05:00 12%3A00%3A00Z";
    for same in same.split(' ') {
        let query = format!("updated_after=2040-01-01T{same}");
        assert_eq!(listed(&world, &token, &query).await, [2], "{same}");
    }
    let bad = "|2040-01-01|2040-01-01T12:00:00|2040-01-01T12:00Z|2040-02-30T12:00:00Z|2040-01-01T25:00:00Z|\
        2040-01-01T12:00:00%2B25:00|2040-01-01T12:00:00.Z|2209032000|yesterday|%202040-01-01T12:00:00Z";
    for bad in bad.split('|') {
        let path = format!("/v1/offers?updated_after={bad}");
        world.invalid(&token, &path, "updated_after").await;
    }
}

/// A seller with offers 1 to `count` from one import.
async fn catalogue(count: usize) -> (World, Seller, String) {
    let world = world().await;
    let (seller, token) = world.reader().await;
    let lines: Vec<_> = (1..=count).map(|n| offer_line(n, json!({}))).collect();
    world.import(&seller, lines.join("\n")).await.expect(200);
    (world, seller, token)
}

/// The offer numbers on each page of a list.
async fn paged(world: &World, token: &str, query: &str) -> Vec<Vec<usize>> {
    let read = async |path: &str| world.read(token, path).await;
    let pages = pages(&format!("/v1/offers?{query}"), read).await;
    pages.iter().map(numbers).collect()
}

#[tokio::test]
async fn pages_together_are_the_whole_list_and_the_last_page_is_not_empty() {
    let (world, seller, token) = catalogue(12).await;
    let all: Vec<_> = (1..=12).rev().collect();
    for limit in 1..=13 {
        let expected: Vec<_> = all.chunks(limit).map(<[usize]>::to_vec).collect();
        assert_eq!(paged(&world, &token, &format!("limit={limit}")).await, expected);
    }
    // `limit` and `fields` may change between pages. Offers that are new or changed meanwhile neither repeat
    // nor hide others.
    let page = async |query: &str| world.read(&token, &format!("/v1/offers?{query}")).await;
    let first = page("limit=2&fields=title").await;
    let after = format!("limit=3&after={}", text(&first, "next"));
    let second = page(&after).await;
    world.offer(&seller, 13, json!({})).await;
    world.offer(&seller, 11, json!({"stock": 1})).await;
    world.offer(&seller, 2, json!({"stock": 1})).await;
    let third = page(&format!("fields=stock,price&after={}", text(&second, "next"))).await;
    assert_eq!([&first, &second].map(numbers), [vec![12, 11], vec![10, 9, 8]]);
    assert_eq!(numbers(&third), [7, 6, 5, 4, 3, 2, 1]);
    assert_eq!(third["next"], Value::Null);
    let members = |offer: &Value| offer.as_object().unwrap().len();
    let whole = format!("/v1/offers/{}", text(&second["items"][0], "id"));
    let whole = members(&world.read(&token, &whole).await);
    for (page, fields) in [(&first, 2), (&second, whole), (&third, 3)] {
        assert_eq!(members(&page["items"][0]), fields);
    }
    // The same cursor gives the same page again.
    assert_eq!(page(&after).await["items"], second["items"]);
}

#[tokio::test]
async fn each_query_error_names_its_parameter_in_the_contracts_order() {
    let world = world().await;
    let (_, token) = world.reader().await;
    let table = "
        zzz=1&updated_after=x&status=sold&fields=nothing&after=x&limit=ten => limit after fields status updated_after zzz
        Limit=1                            => Limit
        placed_after=2040-01-01T12:00:00Z  => placed_after
        limit=1&limit=1                    => limit
        after=&after=                      => after
        status=                            => status
        status=draft,published             => status
        status=%64raft%00                  => status";
    let get = async |query: &str| world.get(&token, &format!("/v1/offers?{query}")).await;
    all_invalid(table, get).await;
    let odd = get("limit%20=1").await;
    odd.is_problem(400, &[entry("validation_error", "limit ")]);
    for fine in ["", "%6Cimit=1"] {
        get(fine).await.expect(200);
    }
    // Invalid UTF-8 and invalid percent-encoding are rejected too.
    for query in "status=%ff status=% status=%zz after=%00 %ff=1 limit=5%".split(' ') {
        let bytes = world.raw("GET", &format!("/v1/offers?{query}"), &token, &[]);
        let answer = Wire::exchange(&world.server.base_url, bytes).await;
        answer.refused(400, "validation_error");
    }
}

#[tokio::test]
async fn ids_name_offers_in_place_of_a_page() {
    let (world, _, token) = catalogue(4).await;
    let (other, _) = world.reader().await;
    world.offer(&other, 5, json!({})).await;
    let get = async |ids: &str, more: &str| world.get(&token, &format!("/v1/offers?ids={ids}{more}")).await;
    // Another seller's, an unknown one, and texts that are no ids are left out.
    let [one, two, three, four, others, unknown] = [1, 2, 3, 4, 5, 6].map(offer_id);
    let strange = three.replace('-', "");
    let named = format!("{two},%20{four},{others},x,{one},{unknown},{strange},{two}");
    let found = get(&named, "&limit=1&fields=title").await.expect(200).json();
    let titles = [4, 2, 1].map(|n| json!({"id": offer_id(n), "title": format!("Kettle {n}")}));
    assert_eq!(found, json!({"items": titles, "next": null}));
    let whole = get(&named.replace(',', "%2C"), "").await.expect(200).json();
    assert_eq!(
        whole["items"][2],
        world.read(&token, &format!("/v1/offers/{one}")).await
    );
    let none = get("x", "").await.expect(200).json();
    assert_eq!(none, json!({"items": [], "next": null}));
    // All that are named count.
    get(&vec![one.as_str(); 100].join(","), "").await.expect(200);
    let many = vec!["x"; 101].join(",");
    for bad in ["", ",", "x,", ",x", "x,,x", "x,%20,x", "+", &many] {
        get(bad, "").await.invalid("ids");
    }
    let cursor = text(&world.read(&token, "/v1/offers?limit=1").await, "next");
    let table = "
        &after=CURSOR         => ids
        &after=x              => ids
        &status=published     => ids
        &status=sold          => status ids
        &updated_after=2000-01-01T00:00:00Z&fields=x => fields ids
        &limit=x&after=x      => ids
        &ids=x                => ids";
    let beside = async |more: &str| get(&one, more).await;
    all_invalid(&table.replace("CURSOR", &cursor), beside).await;
}

#[tokio::test]
async fn offers_are_found_by_external_id_and_ean() {
    let world = world().await;
    let (trader, other) = (world.trader().await, world.trader().await);
    let eans = json!(["4006381333931", "4006381333931", "5901234123457", "", null]);
    let external_ids = json!(["A+B C/ż", "A+B C/ż", "A+B C/z", "a", null]);
    for trader in [&trader, &other] {
        for n in 0..5 {
            let offer = world.offer(&trader.seller, n + 1, json!({"ean": eans[n]})).await;
            let named = json!({"external_id": external_ids[n]});
            world.patched(&trader.token, &offer, &named).await;
        }
    }
    let named = "external_id=A%2BB%20C/%C5%BC";
    for (query, expected) in [
        (named, vec![2, 1]),
        // A space may be a plus sign, as in a form.
        ("external_id=A%2BB+C%2F%C5%BC", vec![2, 1]),
        ("external_id=A+B+C/%C5%BC", vec![]),
        ("external_id=A%2BB%20C/z", vec![3]),
        ("external_id=a%2Bb%20c/z", vec![]),
        ("external_id=a", vec![4]),
        ("external_id=", vec![]),
        ("ean=4006381333931", vec![2, 1]),
        ("ean=40063813339", vec![]),
        ("ean=", vec![4]),
        ("external_id=a&ean=4006381333931", vec![]),
    ] {
        assert_eq!(listed(&world, &trader.token, query).await, expected, "{query}");
    }
    assert_eq!(
        paged(&world, &trader.token, &format!("limit=1&{named}")).await,
        [[2], [1]]
    );
    let get = async |query: &str| world.get(&trader.token, &format!("/v1/offers?{query}")).await;
    let (hundred, digits) = ("%C5%BC".repeat(100), "5".repeat(64));
    get(&format!("external_id={hundred}&ean={digits}"))
        .await
        .expect(200);
    let table = "
        external_id=HUNDREDx     => external_id
        ean=DIGITS5              => ean
        ean=%00&external_id=%ff  => external_id ean
        external_id=a&ean=5&ids=x => ids";
    let table = table.replace("HUNDRED", &hundred).replace("DIGITS", &digits);
    all_invalid(&table, get).await;
}

#[tokio::test]
async fn limit_is_any_integer_and_clamped() {
    let (world, _, token) = catalogue(201).await;
    let count = async |path: &str| ids(&world.read(&token, path).await).len();
    assert_eq!(count("/v1/offers").await, 50);
    let huge = "9".repeat(100);
    let limits = format!(
        "1=1 0=1 -0=1 -1=1 -9223372036854775809=1 -{huge}=1 007=7 199=199 200=200 201=200 65537=200 \
        4294967297=200 18446744073709551617=200 {huge}=200"
    );
    for case in limits.split(' ') {
        let (limit, expected) = case.split_once('=').unwrap();
        let found = count(&format!("/v1/offers?fields=id&limit={limit}")).await;
        assert_eq!(found.to_string(), expected, "{limit}");
    }
    for bad in "|abc|1.5|1.0|%2B5|+5|5%20|0x5|1e2|-|--5|%D9%A1|5,5|null".split('|') {
        let path = format!("/v1/offers?limit={bad}");
        world.invalid(&token, &path, "limit").await;
    }
}
