//! Fixtures shared by the unit tests of the use cases. A mock rejects every call without an expectation.

use std::fmt::Debug;
use std::net::{IpAddr, Ipv4Addr};

use accounts::{Action, Actor, Seller};
use chrono::{DateTime, Utc};
use kernel::{MockRandomness, OfferId, SellerId, StoreError};
use oauth::{Application, ApplicationStatus, ClientType, Family, FamilyStatus, Scope, SecretHash};
use offers::Offer;
use orders::{Buyer, OrderItem, OrderNumber, OrderState, SellerOrder};
use uuid::Uuid;

use crate::shown_once::SentForm;
use crate::{ActingOperator, ActingSeller, Failure, MockTransaction};

pub(crate) const HOME: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

pub(crate) const OPERATOR: ActingOperator = ActingOperator::Token(Uuid::from_u128(5), HOME);

pub(crate) fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_700_000_000, 0).unwrap()
}

/// Deterministic randomness: ids count from 1, secrets are all sevens.
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

/// The acting seller in the panel.
pub(crate) fn by() -> ActingSeller {
    ActingSeller {
        seller: Uuid::from_u128(1).into(),
        address: HOME,
    }
}

pub(crate) fn refusal<T: Debug, R: Debug>(result: Result<T, Failure<R>>) -> R {
    match result {
        Err(Failure::Refused(refusal)) => refusal,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn conflict(constraint: &str) -> StoreError {
    let constraint = constraint.to_owned();
    StoreError::Conflict { constraint }
}

pub(crate) fn deadlock() -> StoreError {
    StoreError::Retryable("deadlock".into())
}

/// A transaction that expects this audit log entry this many times.
pub(crate) fn logging(times: usize, action: Action) -> MockTransaction {
    let mut tx = MockTransaction::new();
    tx.expect_log_action()
        .times(times)
        .withf(move |actor, address, logged, _, _| {
            let by = match actor {
                Actor::Seller(seller) => *seller == by().seller && *address == Some(HOME),
                Actor::Operator(id) => *id == Uuid::from_u128(5) && *address == Some(HOME),
                Actor::CommandLine => address.is_none(),
            };
            by && *logged == action
        })
        .returning(|_, _, _, _, _| Ok(()));
    tx
}

/// Adds every seller's account, all closed or all open.
pub(crate) fn knowing_sellers(mut tx: MockTransaction, closed: bool) -> MockTransaction {
    tx.expect_lock_seller().returning(move |id| {
        let mut seller = seller(id);
        seller.closed_at = closed.then(now);
        Ok(Some(seller))
    });
    tx
}

/// An active, confidential application of seller 1 that is not built in.
pub(crate) fn application() -> Application {
    Application {
        built_in: false,
        client_type: ClientType::Confidential,
        ..Application::built_in(Uuid::from_u128(5).into(), by().seller, now()).after
    }
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
    Offer::example(seller, id, now())
}

/// A newly placed seller's part of an order, with this many pieces of one item.
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
        delivery_point: None,
        invoice: None,
        items: vec![item],
        state: OrderState::Pending,
        updated_at: now(),
    }
}

/// A valid family; the application has fewer scopes than the seller consented to.
pub(crate) fn family() -> Family {
    let held = [Scope::OffersRead].into_iter().collect();
    Family {
        id: Uuid::from_u128(8).into(),
        seller: Uuid::from_u128(2).into(),
        client_id: Uuid::from_u128(3).into(),
        scopes: [Scope::OffersRead, Scope::OrdersRead].into_iter().collect(),
        status: FamilyStatus {
            revoked: false,
            disconnected: false,
            closed: false,
            application: Some((ApplicationStatus::Active, held)),
        },
    }
}
