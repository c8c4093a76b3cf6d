//! A buyer places an order: each seller gets a part of it, and stock is decremented, in one transaction.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use kernel::{BrokenRules, Change, Invalid, Money, OfferId, Randomness, SellerId, StoreError};
use offers::{Offer, OfferStore};
use orders::{
    Buyer, DeliveryPoint, Invoice, OrderId, OrderItem, OrderNumber, OrderRef, OrderState, OrderStore,
    SellerOrder, ShippingAddress,
};

use crate::failure::{ensure, refuse};
use crate::{Announcement, Failure, LockSet, Row};

/// An order as the marketplace submits it.
#[derive(Debug, Clone)]
pub struct NewOrder {
    /// None: a number is generated.
    pub number: Option<OrderNumber>,
    /// A test order takes no stock.
    pub is_test: bool,
    pub payment_method: Option<String>,
    pub delivery_method: Option<String>,
    pub buyer: Option<Buyer>,
    pub shipping_address: Option<ShippingAddress>,
    pub delivery_point: Option<DeliveryPoint>,
    pub invoice: Option<Invoice>,
    /// At least one; each offer of a seller at most once.
    pub items: Vec<Line>,
}

impl NewOrder {
    /// Orders with the same number also wait for each other.
    pub fn locks(&self) -> LockSet {
        let offers = LockSet::of_offers(self.items.iter().map(|line| (line.seller, line.offer)));
        match &self.number {
            Some(number) => offers.and(Row::Order(OrderRef::Number(number.clone()))),
            None => offers,
        }
    }
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
pub enum PlacementRefusal {
    /// Lines that name no existing offer, or the same offer twice.
    #[error("{0}")]
    Invalid(BrokenRules),
    #[error("another order has this number")]
    NumberTaken,
    /// Not enough stock: for each such line its index in the order, from 0, and the available stock.
    #[error("insufficient stock")]
    InsufficientStock(Vec<(usize, i32)>),
}

/// Bytes of all titles, handles and `sku` in an order as JSON, where a control character takes six: an answer has up to 100 such
/// orders.
const MAX_TEXT_BYTES: usize = 256 * 1024;

type Offers = BTreeMap<(SellerId, OfferId), Offer>;

/// Places the order. Offers are locked in the order of sellers and ids, so that concurrent orders cannot
/// deadlock.
pub async fn place_order(
    orders: &dyn OrderStore<Announcement>,
    offers: &dyn OfferStore<Announcement>,
    randomness: &dyn Randomness,
    order: &NewOrder,
    now: DateTime<Utc>,
) -> Result<Placed, Failure<PlacementRefusal>> {
    let id = OrderId::from(randomness.uuid());
    let number = order
        .number
        .clone()
        .unwrap_or_else(|| generated_number(randomness));
    let sellers = order.items.iter().map(|line| line.seller).collect();
    let opened = orders.open_order(id, &number, order.is_test, &sellers, now).await;
    opened.map_err(|error| number_taken(error, order.number.is_some()))?;
    let known = lock_offers(offers, &order.items).await?;
    check_lines(&order.items, &known)?;
    let parts = parts(id, &number, order, &known, now);
    check_texts(&parts)?;
    if !order.is_test {
        take_stock(offers, &order.items, &known, now).await?;
    }
    orders.save_parts(parts).await?;
    Ok(Placed { id, number })
}

/// `SO-` and ten random characters, without easily confused letters.
fn generated_number(randomness: &dyn Randomness) -> OrderNumber {
    const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    let characters = randomness.secret().into_iter().take(10);
    let mut number = String::from("SO-");
    number
        .extend(characters.filter_map(|byte| ALPHABET.get(usize::from(byte % 32)).copied().map(char::from)));
    OrderNumber::from_trusted(number)
}

fn number_taken(error: StoreError, given: bool) -> Failure<PlacementRefusal> {
    match error.conflict() {
        Some("orders_number_key") if given => Failure::Refused(PlacementRefusal::NumberTaken),
        // A generated number exists already: the transaction is retried with another one.
        Some("orders_number_key") => StoreError::Retryable(error.into()).into(),
        _ => error.into(),
    }
}

async fn lock_offers(offers: &dyn OfferStore<Announcement>, lines: &[Line]) -> Result<Offers, StoreError> {
    let mut ids_by_seller = BTreeMap::<SellerId, BTreeSet<OfferId>>::new();
    for line in lines {
        ids_by_seller.entry(line.seller).or_default().insert(line.offer);
    }
    let mut known = Offers::new();
    for (seller, ids) in ids_by_seller {
        let ids = ids.into_iter().collect::<Vec<_>>();
        let found = offers.lock_offers(seller, &ids).await?;
        known.extend(found.into_iter().map(|offer| ((seller, offer.id), offer)));
    }
    Ok(known)
}

fn check_lines(lines: &[Line], known: &Offers) -> Result<(), Failure<PlacementRefusal>> {
    let mut violations = BrokenRules::default();
    let mut seen = BTreeSet::new();
    for (n, line) in lines.iter().enumerate() {
        let reason = if !known.contains_key(&(line.seller, line.offer)) {
            "must be an offer of that seller; none has this id"
        } else if !seen.insert((line.seller, line.offer)) {
            "must not be repeated: add the quantities up in one line"
        } else {
            continue;
        };
        violations.add(format!("items[{n}].offer_id"), Invalid::new(reason));
    }
    violations
        .into_result(Some(()))
        .map_err(|violations| Failure::Refused(PlacementRefusal::Invalid(violations)))
}

fn check_texts(parts: &[Change<SellerOrder, Announcement>]) -> Result<(), Failure<PlacementRefusal>> {
    let items = parts.iter().flat_map(|part| &part.after.items);
    let texts = items.flat_map(|item| [&item.title, &item.handle, &item.sku]);
    let texts = serde_json::to_string(&texts.collect::<Vec<_>>()).map_err(StoreError::unexpected)?;
    if texts.len() <= MAX_TEXT_BYTES {
        return Ok(());
    }
    let mut violations = BrokenRules::default();
    let reason = format!(
        "must have at most {MAX_TEXT_BYTES} bytes of titles, handles and sku in all, as JSON: place several orders"
    );
    violations.add("items", Invalid::new(reason));
    refuse(PlacementRefusal::Invalid(violations))
}

async fn take_stock(
    offers: &dyn OfferStore<Announcement>,
    lines: &[Line],
    known: &Offers,
    now: DateTime<Utc>,
) -> Result<(), Failure<PlacementRefusal>> {
    let mut short = Vec::new();
    let mut taken = BTreeMap::<SellerId, Vec<Change<Offer, Announcement>>>::new();
    for (n, line) in lines.iter().enumerate() {
        let Some(offer) = known.get(&(line.seller, line.offer)) else {
            continue;
        };
        match offer.clone().take_stock(line.quantity, now) {
            Err(available) => short.push((n, available)),
            Ok(change) if change.after != *offer => {
                let change = Announcement::of_offer(change, now);
                taken.entry(line.seller).or_default().push(change);
            }
            Ok(_) => {}
        }
    }
    ensure(short.is_empty(), PlacementRefusal::InsufficientStock(short))?;
    for (seller, changes) in taken {
        offers.save_offers(seller, changes).await?;
    }
    Ok(())
}

fn parts(
    id: OrderId,
    number: &OrderNumber,
    order: &NewOrder,
    known: &Offers,
    now: DateTime<Utc>,
) -> Vec<Change<SellerOrder, Announcement>> {
    let mut items = BTreeMap::<SellerId, Vec<OrderItem>>::new();
    for line in &order.items {
        let offer = known.get(&(line.seller, line.offer));
        items.entry(line.seller).or_default().push(OrderItem {
            offer: line.offer,
            title: line
                .title
                .clone()
                .or_else(|| offer.map(|offer| offer.product.title.clone())),
            handle: offer.map(|offer| offer.product.handle.clone()),
            sku: line.sku.clone(),
            quantity: line.quantity,
            taken: offer
                .filter(|offer| offer.stock.is_some() && !order.is_test)
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
        is_test: order.is_test,
        several_sellers,
        payment_method: order.payment_method.clone(),
        delivery_method: order.delivery_method.clone(),
        placed_at: now,
        buyer: order.buyer.clone(),
        shipping_address: order.shipping_address.clone(),
        delivery_point: order.delivery_point.clone(),
        invoice: order.invoice.clone(),
        items,
        state: OrderState::Pending,
        updated_at: now,
    };
    let placed = items.into_iter().map(|entry| part(entry).placed());
    placed.map(|change| Announcement::of_order(change, now)).collect()
}

#[cfg(test)]
mod tests {
    use offers::Stock;
    use uuid::Uuid;

    use super::*;
    use crate::MockTransaction;
    use crate::test_support::{chance, conflict, now, offer, refusal};

    fn line((seller, offer, quantity): (u128, u128, i32)) -> Line {
        Line {
            seller: Uuid::from_u128(seller).into(),
            offer: Uuid::from_u128(offer).into(),
            quantity,
            unit_price: None,
            title: None,
            sku: None,
        }
    }

    /// Places an order of these lines. Every offer below 100 exists, with five pieces, or with none counted;
    /// the transaction expects this many saves of offers.
    async fn place(
        mut tx: MockTransaction,
        items: &[(u128, u128, i32)],
        (counted, is_test, saves): (bool, bool, usize),
    ) -> Result<Placed, Failure<PlacementRefusal>> {
        tx.expect_save_offers()
            .times(saves)
            .withf(|_, changes| changes.iter().all(|change| change.after.stock.unwrap().get() < 5))
            .returning(|_, _| Ok(()));
        place_with(tx, order(items, None, is_test), counted).await
    }

    async fn place_with(
        mut tx: MockTransaction,
        order: NewOrder,
        counted: bool,
    ) -> Result<Placed, Failure<PlacementRefusal>> {
        tx.expect_lock_offers().returning(move |seller, ids| {
            let known = ids.iter().filter(|id| id.uuid().as_u128() < 100);
            let offers = known.map(|id| Offer {
                stock: Stock::new(5).ok().filter(|_| counted),
                ..offer(seller, *id)
            });
            Ok(offers.collect())
        });
        tx.expect_open_order().returning(|_, _, _, _, _| Ok(()));
        place_order(&tx, &tx, &chance(), &order, now()).await
    }

    fn order(items: &[(u128, u128, i32)], number: Option<OrderNumber>, is_test: bool) -> NewOrder {
        NewOrder {
            number,
            is_test,
            payment_method: None,
            delivery_method: None,
            buyer: None,
            shipping_address: None,
            delivery_point: None,
            invoice: None,
            items: items.iter().copied().map(line).collect(),
        }
    }

    /// Expects saved parts, all of which meet the condition.
    fn saving(count: usize, fine: impl Fn(&SellerOrder) -> bool + Send + 'static) -> MockTransaction {
        let mut tx = MockTransaction::new();
        tx.expect_save_parts()
            .once()
            .withf(move |parts| parts.len() == count && parts.iter().all(|part| fine(&part.after)))
            .returning(|_| Ok(()));
        tx
    }

    #[tokio::test]
    async fn each_seller_gets_a_part_and_stock_goes_down() {
        let lines = [(2, 1, 5), (1, 1, 1), (2, 2, 1)];
        let placed = place(saving(2, |part| part.several_sellers), &lines, (true, false, 2)).await;
        assert!(placed.unwrap().number.as_str().starts_with("SO-"));
    }

    #[tokio::test]
    async fn a_part_records_the_stock_it_took() {
        for (quantity, counted, is_test, saves, taken) in [
            (3, true, false, 1, 3),
            (3, false, false, 0, 0),
            (1000, true, true, 0, 0),
        ] {
            let tx = saving(1, move |part| part.items[0].taken == taken);
            place(tx, &[(1, 1, quantity)], (counted, is_test, saves))
                .await
                .unwrap();
        }
    }

    #[tokio::test]
    async fn an_orders_texts_are_bounded() {
        let lines: Vec<_> = (1..=99).map(|n| (1, n, 1)).collect();
        for (text, length, is_placed) in [
            ("x", 2_500, true),
            ("x", 2_700, false),
            ("\n", 1_250, true),
            ("\0", 500, false),
        ] {
            let mut order = order(&lines, None, true);
            for line in &mut order.items {
                line.title = Some(text.repeat(length));
            }
            let mut tx = MockTransaction::new();
            tx.expect_save_parts()
                .times(usize::from(is_placed))
                .returning(|_| Ok(()));
            let placed = place_with(tx, order, true).await;
            assert_eq!(placed.is_ok(), is_placed);
        }
    }

    #[tokio::test]
    async fn only_a_given_number_can_be_taken() {
        let place = async |number: Option<&str>| {
            let mut tx = MockTransaction::new();
            tx.expect_open_order()
                .returning(|_, _, _, _, _| Err(conflict("orders_number_key")));
            let number = number.map(|number| OrderNumber::new(number.to_owned()).unwrap());
            let order = order(&[(1, 1, 1)], number, false);
            place_order(&tx, &tx, &chance(), &order, now()).await
        };
        let generated = place(None).await.unwrap_err();
        assert!(crate::Retryable::is_retryable(&generated));
        assert_eq!(refusal(place(Some("A-1")).await), PlacementRefusal::NumberTaken);
    }
}
