//! A buyer places an order: each seller gets a part of it, and stock is decremented, in one transaction.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use kernel::{Change, Invalid, Money, OfferId, Randomness, SellerId, StoreError, Violations};
use offers::{Offer, OfferEvent, OfferStore};
use orders::{
    Buyer, OrderEvent, OrderId, OrderItem, OrderNumber, OrderState, OrderStore, SellerOrder, ShippingAddress,
};

use crate::{Failure, failure::refuse};

/// An order as the marketplace submits it.
#[derive(Debug, Clone)]
pub struct Request {
    /// None: a number is generated.
    pub number: Option<OrderNumber>,
    /// A test order takes no stock.
    pub is_test: bool,
    pub payment_method: Option<String>,
    pub delivery_method: Option<String>,
    pub buyer: Option<Buyer>,
    pub shipping_address: Option<ShippingAddress>,
    /// At least one; each offer of a seller at most once.
    pub items: Vec<Line>,
}

/// One line of an order.
#[derive(Debug, Clone)]
pub struct Line {
    pub seller: SellerId,
    pub offer: OfferId,
    /// At least 1.
    pub quantity: i32,
    /// None: the offer's current price.
    pub unit_price: Option<Money>,
    /// None: the offer's current title.
    pub title: Option<String>,
    /// The seller's own number.
    pub sku: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    pub id: OrderId,
    pub number: OrderNumber,
}

/// Why an order is not placed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Lines that name no existing offer, or the same offer twice.
    #[error("{0}")]
    Invalid(Violations),
    /// The number belongs to another order.
    #[error("another order has this number")]
    NumberTaken,
    /// Not enough stock: for each such line its index in the request, from 0, and the available stock.
    #[error("too little in stock")]
    Short(Vec<(usize, i32)>),
}

type Offers = BTreeMap<(SellerId, OfferId), Offer>;

/// Places the order. Offers are locked in the order of sellers and ids, so that concurrent orders cannot deadlock.
pub async fn place_order(
    orders: &dyn OrderStore,
    offers: &dyn OfferStore,
    randomness: &dyn Randomness,
    request: &Request,
    now: DateTime<Utc>,
) -> Result<Placed, Failure<Refusal>> {
    let id = OrderId::from(randomness.uuid());
    let number = request.number.clone().unwrap_or_else(|| made_number(randomness));
    let opened = orders.open_order(id, &number, request.is_test, now).await;
    opened.map_err(|error| number_taken(error, request.number.is_some()))?;
    let known = lock_offers(offers, &request.items).await?;
    check_lines(&request.items, &known)?;
    if !request.is_test {
        take_stock(offers, &request.items, &known, now).await?;
    }
    orders
        .save_parts(parts(id, &number, request, &known, now))
        .await?;
    Ok(Placed { id, number })
}

/// A number of ten characters that excludes easily confused ones.
fn made_number(randomness: &dyn Randomness) -> OrderNumber {
    const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    let characters = randomness.secret().into_iter().take(10);
    let mut number = String::from("SO-");
    number
        .extend(characters.filter_map(|byte| ALPHABET.get(usize::from(byte % 32)).copied().map(char::from)));
    OrderNumber::from_trusted(number)
}

fn number_taken(error: StoreError, given: bool) -> Failure<Refusal> {
    match error.conflict() {
        Some("orders_number_key") if given => Failure::Refused(Refusal::NumberTaken),
        // A generated number exists already: the transaction is repeated with another one.
        Some("orders_number_key") => StoreError::Retryable(Box::new(error)).into(),
        _ => error.into(),
    }
}

async fn lock_offers(offers: &dyn OfferStore, lines: &[Line]) -> Result<Offers, StoreError> {
    let mut wanted = BTreeMap::<SellerId, Vec<OfferId>>::new();
    for line in lines {
        wanted.entry(line.seller).or_default().push(line.offer);
    }
    let mut known = Offers::new();
    for (seller, mut ids) in wanted {
        ids.sort_unstable();
        ids.dedup();
        let found = offers.lock_offers(seller, &ids).await?;
        known.extend(found.into_iter().map(|offer| ((seller, offer.id), offer)));
    }
    Ok(known)
}

fn check_lines(lines: &[Line], known: &Offers) -> Result<(), Failure<Refusal>> {
    let mut violations = Violations::new();
    let mut seen = std::collections::BTreeSet::new();
    for (n, line) in lines.iter().enumerate() {
        let path = || format!("items[{n}].offer_id");
        if !known.contains_key(&(line.seller, line.offer)) {
            violations.add(
                path(),
                Invalid::new("must be an offer of that seller; there is none with this id"),
            );
        } else if !seen.insert((line.seller, line.offer)) {
            violations.add(
                path(),
                Invalid::new("must not be given twice: put the pieces into one line"),
            );
        }
    }
    violations
        .into_result()
        .map_err(|violations| Failure::Refused(Refusal::Invalid(violations)))
}

async fn take_stock(
    offers: &dyn OfferStore,
    lines: &[Line],
    known: &Offers,
    now: DateTime<Utc>,
) -> Result<(), Failure<Refusal>> {
    let mut short = Vec::new();
    let mut taken = BTreeMap::<SellerId, Vec<Change<Offer, OfferEvent>>>::new();
    for (n, line) in lines.iter().enumerate() {
        let Some(offer) = known.get(&(line.seller, line.offer)) else {
            continue;
        };
        match offer.clone().take_stock(line.quantity, now) {
            Err(refused) => short.push((n, refused.available)),
            Ok(change) if change.after != *offer => taken.entry(line.seller).or_default().push(change),
            Ok(_) => {}
        }
    }
    if !short.is_empty() {
        return refuse(Refusal::Short(short));
    }
    for (seller, changes) in taken {
        offers.save_offers(seller, changes).await?;
    }
    Ok(())
}

fn parts(
    id: OrderId,
    number: &OrderNumber,
    request: &Request,
    known: &Offers,
    now: DateTime<Utc>,
) -> Vec<Change<SellerOrder, OrderEvent>> {
    let mut items = BTreeMap::<SellerId, Vec<OrderItem>>::new();
    for line in &request.items {
        let offer = known.get(&(line.seller, line.offer));
        items.entry(line.seller).or_default().push(OrderItem {
            offer: line.offer,
            title: line
                .title
                .clone()
                .or_else(|| offer.map(|offer| offer.title.clone())),
            handle: offer.map(|offer| offer.handle.clone()),
            sku: line.sku.clone(),
            quantity: line.quantity,
            taken: offer
                .filter(|offer| offer.stock.is_some() && !request.is_test)
                .map_or(0, |_| line.quantity),
            unit_price: line
                .unit_price
                .or_else(|| offer.and_then(|offer| offer.price).map(|price| price.money)),
        });
    }
    let several_sellers = items.len() > 1;
    let part = |(seller, items)| SellerOrder {
        seller,
        id,
        number: number.clone(),
        is_test: request.is_test,
        several_sellers,
        payment_method: request.payment_method.clone(),
        delivery_method: request.delivery_method.clone(),
        placed_at: now,
        buyer: request.buyer.clone(),
        shipping_address: request.shipping_address.clone(),
        items,
        state: OrderState::Pending,
        updated_at: now,
    };
    items.into_iter().map(|entry| part(entry).placed()).collect()
}

#[cfg(test)]
mod tests {
    use offers::Stock;
    use uuid::Uuid;

    use super::*;
    use crate::MockTransaction;
    use crate::test_support::{chance, now, offer};

    fn line(seller: u128, offer: u128, quantity: i32) -> Line {
        Line {
            seller: Uuid::from_u128(seller).into(),
            offer: Uuid::from_u128(offer).into(),
            quantity,
            unit_price: None,
            title: None,
            sku: None,
        }
    }

    fn request(items: Vec<Line>, is_test: bool) -> Request {
        Request {
            number: None,
            is_test,
            payment_method: None,
            delivery_method: None,
            buyer: None,
            shipping_address: None,
            items,
        }
    }

    /// Every offer below 100 exists, with five pieces.
    fn offers() -> MockTransaction {
        let mut offers = MockTransaction::new();
        offers.expect_lock_offers().returning(|seller, ids| {
            let known = ids.iter().filter(|id| id.uuid().as_u128() < 100);
            Ok(known
                .map(|id| Offer {
                    stock: Stock::new(5).ok(),
                    ..offer(seller, *id)
                })
                .collect())
        });
        offers
    }

    fn orders() -> MockTransaction {
        let mut orders = MockTransaction::new();
        orders.expect_open_order().returning(|_, _, _, _| Ok(()));
        orders
    }

    #[tokio::test]
    async fn each_seller_gets_a_part_and_stock_goes_down() {
        let (mut orders, mut offers) = (orders(), offers());
        offers
            .expect_save_offers()
            .times(2)
            .withf(|_, changes| changes.iter().all(|change| change.after.stock.unwrap().get() < 5))
            .returning(|_, _| Ok(()));
        orders
            .expect_save_parts()
            .once()
            .withf(|parts| parts.len() == 2 && parts.iter().all(|part| part.after.several_sellers))
            .returning(|_| Ok(()));
        let request = request(vec![line(2, 1, 5), line(1, 1, 1), line(2, 2, 1)], false);
        let placed = place_order(&orders, &offers, &chance(), &request, now())
            .await
            .unwrap();
        assert!(placed.number.as_str().starts_with("SO-"));
    }

    #[tokio::test]
    async fn every_short_and_every_unknown_line_is_named() {
        let short = request(vec![line(1, 1, 6), line(1, 2, 5), line(1, 3, 7)], false);
        let failure = place_order(&orders(), &offers(), &chance(), &short, now())
            .await
            .unwrap_err();
        assert!(matches!(failure, Failure::Refused(Refusal::Short(lines)) if lines == [(0, 5), (2, 5)]));
        let wrong = request(vec![line(1, 100, 1), line(1, 2, 1), line(1, 2, 1)], false);
        let failure = place_order(&orders(), &offers(), &chance(), &wrong, now())
            .await
            .unwrap_err();
        let Failure::Refused(Refusal::Invalid(violations)) = failure else {
            panic!("{failure}")
        };
        let paths = violations
            .iter()
            .map(|(path, _)| path.to_owned())
            .collect::<Vec<_>>();
        assert_eq!(paths, ["items[0].offer_id", "items[2].offer_id"]);
    }

    /// Expects saved parts with one item each, of which this many pieces were taken.
    fn orders_taking(pieces: i32) -> MockTransaction {
        let mut orders = orders();
        orders
            .expect_save_parts()
            .once()
            .withf(move |parts| parts.iter().all(|part| part.after.items[0].taken == pieces))
            .returning(|_| Ok(()));
        orders
    }

    #[tokio::test]
    async fn an_order_knows_what_it_took() {
        let mut counted = offers();
        counted.expect_save_offers().once().returning(|_, _| Ok(()));
        let mut uncounted = MockTransaction::new();
        uncounted
            .expect_lock_offers()
            .returning(|seller, ids| Ok(ids.iter().map(|id| offer(seller, *id)).collect()));
        for (offers, pieces) in [(counted, 3), (uncounted, 0)] {
            let request = request(vec![line(1, 1, 3)], false);
            let placed = place_order(&orders_taking(pieces), &offers, &chance(), &request, now()).await;
            assert!(placed.is_ok());
        }
    }

    #[tokio::test]
    async fn a_test_order_touches_no_stock() {
        let orders = orders_taking(0);
        let request = request(vec![line(1, 1, 1000)], true);
        assert!(
            place_order(&orders, &offers(), &chance(), &request, now())
                .await
                .is_ok()
        );
    }

    #[tokio::test]
    async fn only_a_given_number_can_be_taken() {
        let taken = || {
            let mut orders = MockTransaction::new();
            let conflict = || StoreError::Conflict {
                constraint: "orders_number_key".to_owned(),
            };
            orders
                .expect_open_order()
                .returning(move |_, _, _, _| Err(conflict()));
            orders
        };
        let mut given = request(vec![line(1, 1, 1)], false);
        let failure = place_order(&taken(), &offers(), &chance(), &given, now())
            .await
            .unwrap_err();
        assert!(crate::Repeatable::is_repeatable(&failure));
        given.number = OrderNumber::new("A-1".to_owned()).ok();
        let failure = place_order(&taken(), &offers(), &chance(), &given, now())
            .await
            .unwrap_err();
        assert!(matches!(failure, Failure::Refused(Refusal::NumberTaken)));
    }
}
