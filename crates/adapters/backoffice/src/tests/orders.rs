//! Orders: placed and read back.

use serde_json::{Value, json};

use super::fixture::{Answer, Office, uuid};

/// Two sellers; the first has an offer with a price and five pieces, the second one without either.
pub(crate) async fn shop() -> (Office, [String; 2], [String; 2]) {
    let (office, first) = Office::with_seller().await;
    let other = office
        .post("/sellers", r#"{"name": "Cups", "email": "cups@example.com"}"#)
        .await;
    let second = other.json()["id"].as_str().unwrap().to_owned();
    let kettle = office.with_offer(&first, 701, Some(1999), Some(5)).await;
    let cup = office.with_offer(&second, 702, None, None).await;
    (office, [first, second], [kettle, cup])
}

/// An order of two kettles and three cups.
pub(crate) fn order(sellers: &[String; 2], offers: &[String; 2]) -> Value {
    json!({
        "order_number": "SHOP-1", "payment_method": "blik", "delivery_method": "courier",
        "buyer": {"name": "Jan Nowak", "email": "jan@example.com", "phone": "+48 600 100 200"},
        "shipping_address": {"line1": "Prosta 1", "postal_code": "00-001", "city": "Warszawa", "country": "PL"},
        "items": [
            {"seller_id": sellers[0], "offer_id": offers[0], "quantity": 2},
            {"seller_id": sellers[1], "offer_id": offers[1], "quantity": 3, "title": "Blue cup", "sku": "C-1",
             "unit_price": {"amount": 700, "currency": "PLN"}},
        ],
    })
}

pub(crate) async fn place(office: &Office, order: &Value) -> Answer {
    office.post("/orders", &order.to_string()).await
}

fn stock(office: &Office) -> Vec<Option<i32>> {
    let rows = office.store.rows();
    rows.offers
        .values()
        .map(|offer| offer.stock.map(::offers::Stock::get))
        .collect()
}

#[actix_web::test]
async fn an_order_takes_stock_and_is_read_back_whole_by_id_and_number() {
    let (office, sellers, offers) = shop().await;
    let placed = place(&office, &order(&sellers, &offers)).await;
    assert_eq!(placed.status, 201);
    let id = placed.json()["order_id"].as_str().unwrap().to_owned();
    assert_eq!(placed.json(), json!({"order_id": id, "order_number": "SHOP-1"}));
    assert_eq!(stock(&office), [Some(3), None]);
    let personal = json!({
        "buyer": {"name": "Jan Nowak", "email": "jan@example.com", "phone": "+48 600 100 200"},
        "shipping_address": {
            "line1": "Prosta 1", "line2": null, "postal_code": "00-001", "city": "Warszawa", "country": "PL",
        },
    });
    let part = |seller: &str, item: Value| {
        let mut part = json!({
            "seller_id": seller, "status": "pending", "payment_status": "awaiting_payment", "paid_at": null,
            "shipped_at": null, "delivered_at": null, "cancelled_at": null, "shipment": null,
            "updated_at": "2023-11-14T22:13:20.000000Z", "items": [item],
        });
        part.as_object_mut()
            .unwrap()
            .extend(personal.as_object().unwrap().clone());
        part
    };
    let expected = json!({
        "order_id": id, "order_number": "SHOP-1", "status": "pending", "is_test": false, "payment_method": "blik",
        "delivery_method": "courier", "placed_at": "2023-11-14T22:13:20.000000Z",
        "parts": [
            part(&sellers[0], json!({
                "id": offers[0], "offer_id": offers[0], "title": "Kettle 701", "handle": "kettle", "sku": null,
                "quantity": 2, "unit_price": {"amount": 1999, "currency": "PLN"},
            })),
            part(&sellers[1], json!({
                "id": offers[1], "offer_id": offers[1], "title": "Blue cup", "handle": "kettle", "sku": "C-1",
                "quantity": 3, "unit_price": {"amount": 700, "currency": "PLN"},
            })),
        ],
    });
    for name in [id.as_str(), "SHOP-1"] {
        let read = office.get(&format!("/orders/{name}")).await;
        assert_eq!((read.status.as_u16(), read.json()), (200, expected.clone()));
    }
}

#[actix_web::test]
async fn all_but_the_items_may_be_left_out() {
    let (office, sellers, offers) = shop().await;
    let least = json!({"items": [{"seller_id": sellers[0], "offer_id": offers[0], "quantity": 1}]});
    let placed = place(&office, &least).await;
    assert_eq!(placed.status, 201);
    let number = placed.json()["order_number"].as_str().unwrap().to_owned();
    assert!(number.starts_with("SO-"), "{number}");
    let read = office.get(&format!("/orders/{number}")).await.json();
    let part = &read["parts"][0];
    for missing in [
        &read["payment_method"],
        &read["delivery_method"],
        &part["buyer"],
        &part["shipping_address"],
    ] {
        assert_eq!(*missing, Value::Null);
    }
    let mut test = order(&sellers, &offers);
    test["is_test"] = json!(true);
    assert_eq!(place(&office, &test).await.status, 201);
    assert_eq!(office.get("/orders/SHOP-1").await.json()["is_test"], true);
    assert_eq!(stock(&office)[0], Some(4));
}

#[actix_web::test]
async fn everything_wrong_is_told_with_its_path() {
    let (office, ..) = shop().await;
    let wrong = json!({
        "order_number": "shop 1", "is_test": null, "payment_method": 5, "delivery_method": "x".repeat(501),
        "buyer": {"email": "nobody", "age": 5}, "shipping_address": {"city": "Warszawa"},
        "items": [
            {"seller_id": "x", "offer_id": "y", "quantity": 0, "unit_price": {"amount": 1.5}},
            {"quantity": 2_147_483_648_i64},
        ],
    });
    let paths = [
        "order_number",
        "is_test",
        "payment_method",
        "delivery_method",
        "buyer.email",
        "shipping_address.country",
        "items[0].seller_id",
        "items[0].offer_id",
        "items[0].quantity",
        "items[0].unit_price.amount",
        "items[0].unit_price.currency",
        "items[1].seller_id",
        "items[1].offer_id",
        "items[1].quantity",
        "buyer.age",
    ];
    let expected = paths.map(|path| format!("validation_error {path}")).join(", ");
    assert_eq!(place(&office, &wrong).await.errors(), format!("400 {expected}"));
    let empty = place(&office, &json!({"buyer": {"email": ""}, "items": [{}]})).await;
    let told = empty.json()["errors"][0]["message"].clone();
    assert_eq!(told, "Must be an e-mail address; where there is none, send null.");
    for items in [json!([]), json!(null), json!(vec![json!({}); 1001])] {
        let answer = place(&office, &json!({ "items": items })).await;
        assert_eq!(answer.errors(), "400 validation_error items");
    }
}

#[actix_web::test]
async fn lines_name_offers_that_exist_and_each_once() {
    let (office, sellers, offers) = shop().await;
    let lines = json!({"items": [
        {"seller_id": sellers[0], "offer_id": offers[0], "quantity": 1},
        {"seller_id": sellers[0], "offer_id": offers[1], "quantity": 1},
        {"seller_id": uuid(99), "offer_id": offers[0], "quantity": 1},
        {"seller_id": sellers[0], "offer_id": offers[0], "quantity": 1},
    ]});
    assert_eq!(
        place(&office, &lines).await.errors(),
        "400 validation_error items[1].offer_id, validation_error items[2].offer_id, validation_error items[3].offer_id"
    );
    assert_eq!(stock(&office)[0], Some(5));
    assert!(office.store.rows().numbers.is_empty());
}

#[actix_web::test]
async fn a_number_is_given_once() {
    let (office, sellers, offers) = shop().await;
    let order = order(&sellers, &offers);
    assert_eq!(place(&office, &order).await.status, 201);
    assert_eq!(place(&office, &order).await.errors(), "409 conflict order_number");
    assert_eq!(stock(&office)[0], Some(3));
}

#[actix_web::test]
async fn every_short_line_is_told() {
    let (office, sellers, offers) = shop().await;
    let pot = office.with_offer(&sellers[1], 703, None, Some(0)).await;
    let mut greedy = order(&sellers, &offers);
    greedy["items"][0]["quantity"] = json!(6);
    let line = json!({"seller_id": sellers[1], "offer_id": pot, "quantity": 1});
    greedy["items"].as_array_mut().unwrap().push(line);
    let answer = place(&office, &greedy).await;
    assert_eq!(
        answer.errors(),
        "409 insufficient_stock items[0].quantity, insufficient_stock items[2].quantity"
    );
    assert_eq!(answer.json()["errors"][0]["message"], "Only 5 in stock.");
    assert_eq!(office.get("/orders/SHOP-1").await.errors(), "404 not_found");
}

#[actix_web::test]
async fn what_names_no_order_is_not_found() {
    let (office, ..) = shop().await;
    for name in [&uuid(5), "SHOP-9", "shop", "%00", "%zz"] {
        for (method, move_) in [
            (actix_web::http::Method::GET, ""),
            (actix_web::http::Method::POST, "/payment"),
            (actix_web::http::Method::POST, "/buyer-erasure"),
        ] {
            let answer = office.call(method, &format!("/orders/{name}{move_}"), "").await;
            assert_eq!(answer.errors(), "404 not_found", "{name}{move_}");
        }
    }
}
