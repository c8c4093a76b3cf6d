//! What the unit tests of the use cases share.

use chrono::{DateTime, TimeDelta, Utc};
use kernel::{MockRandomness, OfferId, SellerId};
use oauth::{ApplicationStatus, Family, Scope, SecretHash, Seller, Standing};
use offers::{Offer, OfferStatus};
use orders::{Buyer, OrderItem, OrderNumber, OrderState, SellerOrder};
use uuid::Uuid;

use crate::sent_form::SentForm;
use crate::token_pair::Lifetimes;

pub(crate) fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_700_000_000, 0).unwrap()
}

/// Randomness that repeats itself: ids count from 1, secrets are all sevens.
pub(crate) fn chance() -> MockRandomness {
    let mut chance = MockRandomness::new();
    let mut id = 0_u128;
    chance.expect_uuid().returning_st(move || {
        id += 1;
        Uuid::from_u128(id)
    });
    chance.expect_secret().returning(|| [7; 32]);
    chance
}

/// A form of the panel.
pub(crate) fn sent_form() -> SentForm {
    SentForm {
        session: SecretHash::of("x"),
        number: Uuid::from_u128(4),
        mark: Uuid::from_u128(5),
    }
}

pub(crate) fn seller(id: SellerId) -> Seller {
    Seller {
        id,
        seller_no: 1,
        name: "Kettles".to_owned(),
        email: "shop@example.com".to_owned(),
        created_at: now(),
        closed_at: None,
    }
}

/// A published offer without price and stock.
pub(crate) fn offer(seller: SellerId, id: OfferId) -> Offer {
    Offer {
        seller,
        id,
        title: "Kettle".to_owned(),
        handle: "kettle".to_owned(),
        status: OfferStatus::Published,
        price: None,
        stock: None,
        ean: None,
        brand: None,
        signature: None,
        thumbnail: None,
        url: "https://shop.example/kettle".to_owned(),
        created_at: now(),
        updated_at: now(),
    }
}

/// A seller's part of an order, just placed, with so many pieces of one item.
pub(crate) fn part(seller: u128, quantity: i32) -> SellerOrder {
    let item = OrderItem {
        offer: Uuid::from_u128(seller * 100).into(),
        title: None,
        handle: None,
        sku: None,
        quantity,
        taken: quantity,
        unit_price: None,
    };
    SellerOrder {
        seller: Uuid::from_u128(seller).into(),
        id: Uuid::from_u128(9).into(),
        number: OrderNumber::new("A-1".to_owned()).unwrap(),
        is_test: false,
        several_sellers: false,
        payment_method: None,
        delivery_method: None,
        placed_at: now(),
        buyer: Some(Buyer {
            email: Some("buyer@example.com".to_owned()),
            ..Buyer::default()
        }),
        shipping_address: None,
        items: vec![item],
        state: OrderState::Pending,
        updated_at: now(),
    }
}

/// A family that stands; the application holds less than the seller consented to.
pub(crate) fn family() -> Family {
    let held = [Scope::OffersRead].into_iter().collect();
    Family {
        id: Uuid::from_u128(8).into(),
        seller: Uuid::from_u128(2).into(),
        client_id: Uuid::from_u128(3).into(),
        scopes: [Scope::OffersRead, Scope::OrdersRead].into_iter().collect(),
        standing: Standing {
            revoked: false,
            disconnected: false,
            closed: false,
            application: Some((ApplicationStatus::Active, held)),
        },
    }
}

pub(crate) fn lifetimes() -> Lifetimes {
    Lifetimes {
        access: TimeDelta::hours(12),
        refresh: TimeDelta::days(90),
    }
}
