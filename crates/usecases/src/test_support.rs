//! What the unit tests of the use cases share.

use chrono::{DateTime, Utc};
use kernel::{MockRandomness, SellerId};
use oauth::Seller;
use uuid::Uuid;

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
