//! One offer: put and read.

use ::offers::{Price, PriceSource};
use actix_web::http::Method;
use kernel::{Money, OfferId, SellerId};
use serde_json::{Value, json};

use super::fixture::{Answer, Office, uuid};

fn whole() -> Value {
    json!({
        "title": "Kettle", "handle": "kettle", "status": "published", "price": {"amount": 1999, "currency": "PLN"},
        "stock": 3, "ean": "5901234123457", "brand": "Żelmer", "signature": "1|2|3",
        "thumbnail": "https://cdn.example/1.jpg", "url": "https://shop.example/kettle",
    })
}

async fn put(office: &Office, path: &str, body: &Value) -> Answer {
    office.call(Method::PUT, path, &body.to_string()).await
}

#[actix_web::test]
async fn a_new_offer_is_201_the_same_again_200_and_both_show_it_whole() {
    let (office, seller) = Office::with_seller().await;
    let path = format!("/sellers/{seller}/offers/{}", uuid(7));
    let created = put(&office, &path, &whole()).await;
    assert_eq!(created.status, 201);
    let mut expected = whole();
    expected["id"] = json!(uuid(7));
    expected["created_at"] = json!("2023-11-14T22:13:20.000000Z");
    expected["updated_at"] = json!("2023-11-14T22:13:20.000000Z");
    expected["price_source"] = json!("automatic");
    assert_eq!(created.json(), expected);
    let again = put(&office, &path, &whole()).await;
    assert_eq!((again.status.as_u16(), again.json()), (200, expected.clone()));
    assert_eq!(office.store.rows().saved, [1]);
    let read = office.get(&path).await;
    assert_eq!((read.status.as_u16(), read.json()), (200, expected));
}

#[actix_web::test]
async fn nullable_fields_may_be_absent_which_is_null() {
    let (office, seller) = Office::with_seller().await;
    let path = format!("/sellers/{seller}/offers/{}", uuid(7));
    let least = json!({"title": "K", "handle": "k", "status": "draft", "url": "https://shop.example/k"});
    let answer = put(&office, &path, &least).await;
    assert_eq!(answer.status, 201);
    for field in [
        "price",
        "stock",
        "ean",
        "brand",
        "signature",
        "thumbnail",
        "price_source",
    ] {
        assert_eq!(answer.json().get(field), Some(&Value::Null), "{field}");
    }
    let mut nulls = least;
    for field in ["price", "stock", "ean", "brand", "signature", "thumbnail"] {
        nulls[field] = Value::Null;
    }
    assert_eq!(put(&office, &path, &nulls).await.status, 200);
    assert_eq!(office.store.rows().saved, [1]);
}

#[actix_web::test]
async fn a_manual_price_is_shown_as_such_and_stays() {
    let (office, seller) = Office::with_seller().await;
    let path = format!("/sellers/{seller}/offers/{}", uuid(7));
    put(&office, &path, &whole()).await;
    let key: (SellerId, OfferId) = (seller.parse().unwrap(), uuid(7).parse().unwrap());
    office.store.rows().offers.get_mut(&key).unwrap().price = Some(Price {
        money: Money::pln(500).unwrap(),
        source: PriceSource::Manual,
    });
    let fed = put(&office, &path, &whole()).await.json();
    assert_eq!(
        (&fed["price"]["amount"], &fed["price_source"]),
        (&json!(500), &json!("manual"))
    );
}

#[actix_web::test]
async fn everything_wrong_with_an_offer_is_reported_in_field_order() {
    let (office, seller) = Office::with_seller().await;
    let path = format!("/sellers/{seller}/offers/{}", uuid(7));
    let wrong = json!({
        "id": uuid(7), "title": "", "handle": "a b", "status": "sold", "price": {"amount": -1, "currency": "EUR"},
        "stock": 2_147_483_648_i64, "ean": 5, "thumbnail": "x", "url": null,
    });
    let fields = [
        "title",
        "handle",
        "status",
        "price.amount",
        "price.currency",
        "stock",
        "ean",
        "thumbnail",
        "url",
        "id",
    ];
    let expected = fields.map(|field| format!("validation_error {field}")).join(", ");
    assert_eq!(
        put(&office, &path, &wrong).await.errors(),
        format!("400 {expected}")
    );
    for (field, value) in [
        ("amount", "1999.0"),
        ("amount", "1e3"),
        ("amount", "\"5\""),
        ("amount", "9007199254740992"),
    ] {
        let body = whole().to_string().replace("1999", value);
        let answer = office.call(Method::PUT, &path, &body).await;
        assert_eq!(
            answer.errors(),
            format!("400 validation_error price.{field}"),
            "{value}"
        );
    }
    assert!(office.store.rows().offers.is_empty());
}

#[actix_web::test]
async fn an_offer_of_nobody_or_nowhere_is_not_found() {
    let (office, seller) = Office::with_seller().await;
    for path in [
        format!("/sellers/{}/offers/{}", uuid(99), uuid(7)),
        format!("/sellers/{seller}/offers/7"),
        format!("/sellers/x/offers/{}", uuid(7)),
    ] {
        assert_eq!(
            put(&office, &path, &whole()).await.errors(),
            "404 not_found",
            "{path}"
        );
        assert_eq!(office.get(&path).await.errors(), "404 not_found", "{path}");
    }
    let none = office.get(&format!("/sellers/{seller}/offers/{}", uuid(7))).await;
    assert_eq!(none.errors(), "404 not_found");
}
