//! Seeding orders, once: all in one transaction, through the use cases.
//!
//! A sandbox of an earlier version gets its orders at the first start of this one. Whether they are there tell their
//! numbers; what is told of them in the credentials is read from the database at each start.

use std::collections::BTreeMap;

use adapter_postgres::Database;
use adapter_sealing::SystemRandomness;
use anyhow::{Context as _, anyhow};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use kernel::{OfferId, PageSize, SellerId};
use offers::{Offer, OfferFilter, OfferStatus};
use orders::{OrderDirectory, OrderId, OrderNumber, OrderRef, Sighting, TrackingNumber, TrackingStatus};
use usecases::{
    Transaction, Work,
    place_order::{self, Line, place_order},
    settle_order::{Settlement, settle_order},
    ship_order::{Report, record_report},
    transact,
};

use super::{
    data_dir::Credentials,
    plan::{Kind, OrderPlan, Plan, Stage},
    seed::{SeedError, invalid, refused},
};

/// A seller, as far as orders concern it.
struct Shop {
    id: SellerId,
    seller_no: i32,
    /// Offers that can be bought.
    offers: Vec<Offer>,
}

/// Makes sure that there are orders, and names some in the credentials.
pub(super) async fn trade_once(
    database: &Database,
    plan: &Plan,
    credentials: &mut Credentials,
) -> anyhow::Result<()> {
    let plans = plan.orders();
    let directory = database.order_directory();
    let numbers = |plan: &OrderPlan| Some(plan.number(credentials.sellers.get(plan.seller)?.seller_no));
    let mut is_there = false;
    for number in plans.iter().filter_map(numbers) {
        is_there = find(&*directory, number).await?.is_some();
        if is_there {
            break;
        }
    }
    if !is_there {
        let trade = Trade {
            plan,
            orders: &plans,
            shops: shops(database, credentials).await?,
            randomness: &SystemRandomness::new(),
        };
        transact(&*database.units(), &trade)
            .await
            .context("cannot seed orders")?;
    }
    name_examples(&*directory, &plans, credentials).await
}

async fn find(directory: &dyn OrderDirectory, number: OrderNumber) -> anyhow::Result<Option<OrderId>> {
    let parts = directory.parts(&OrderRef::Number(number)).await?;
    Ok(parts.first().map(|part| part.id))
}

async fn shops(database: &Database, credentials: &Credentials) -> anyhow::Result<Vec<Shop>> {
    let (reader, mut shops) = (database.offer_reader(), Vec::new());
    let published = OfferFilter {
        status: Some(OfferStatus::Published),
        ..OfferFilter::default()
    };
    for seller in &credentials.sellers {
        let id = seller
            .id
            .parse()
            .map_err(|_| anyhow!("the credentials name no seller"))?;
        let page = reader
            .offers(id, published, None, PageSize::clamped(i64::MAX))
            .await?;
        let offers = page
            .items
            .into_iter()
            .filter(|offer| offer.price.is_some() && offer.stock.is_some());
        shops.push(Shop {
            id,
            seller_no: seller.seller_no,
            offers: offers.collect(),
        });
    }
    Ok(shops)
}

/// The newest order of each kind that a seller has.
async fn name_examples(
    directory: &dyn OrderDirectory,
    plans: &[OrderPlan],
    credentials: &mut Credentials,
) -> anyhow::Result<()> {
    let paid = plans.iter().filter(|plan| plan.stage == Stage::Paid);
    for plan in paid {
        let Some(seller) = credentials.sellers.get(plan.seller) else {
            continue;
        };
        let Some(id) = find(directory, plan.number(seller.seller_no)).await? else {
            continue;
        };
        let concerned = credentials.sellers.iter_mut().skip(plan.seller);
        for seller in concerned.take(plan.sellers()) {
            let example = match plan.kind {
                Kind::Ordinary => &mut seller.examples.order,
                Kind::TwoSellers => &mut seller.examples.multi_seller_order,
                Kind::Test => &mut seller.examples.test_order,
            };
            *example = Some(id.to_string());
        }
    }
    Ok(())
}

/// The one transaction.
struct Trade<'a> {
    plan: &'a Plan,
    orders: &'a [OrderPlan],
    shops: Vec<Shop>,
    randomness: &'a SystemRandomness,
}

/// When offers were last changed, and what is left of them. An order takes only what has not been changed since it was
/// placed, for `updated_at` must not go back.
type Shelves = BTreeMap<(SellerId, OfferId), (DateTime<Utc>, i32)>;

#[async_trait]
impl Work for Trade<'_> {
    type Done = ();
    type Error = SeedError;

    async fn run(&self, transaction: &dyn Transaction) -> Result<(), SeedError> {
        let mut shelves = self.shelves();
        for plan in self.orders {
            if let Some(request) = self.request(plan, transaction.now() - plan.age, &mut shelves) {
                self.order(transaction, plan, &request, &mut shelves).await?;
            }
        }
        Ok(())
    }
}

impl Trade<'_> {
    fn shelves(&self) -> Shelves {
        let offers = self
            .shops
            .iter()
            .flat_map(|shop| shop.offers.iter().map(|offer| (shop.id, offer)));
        let entry = |(seller, offer): (SellerId, &Offer)| {
            let stock = offer.stock.map_or(0, offers::Stock::get);
            ((seller, offer.id), (offer.updated_at, stock))
        };
        offers.map(entry).collect()
    }

    /// What is ordered; nothing where there is too little to be had.
    fn request(
        &self,
        plan: &OrderPlan,
        at: DateTime<Utc>,
        shelves: &mut Shelves,
    ) -> Option<place_order::Request> {
        let shops = self.shops.iter().skip(plan.seller).take(plan.sellers());
        let shops = shops.collect::<Vec<_>>();
        let mut items = Vec::new();
        for shop in &shops {
            items.extend(lines(plan, shop, at, shelves)?);
        }
        let (payment, delivery) = plan.methods();
        Some(place_order::Request {
            number: Some(plan.number(shops.first()?.seller_no)),
            is_test: plan.kind == Kind::Test,
            payment_method: Some(payment.to_owned()),
            delivery_method: Some(delivery.to_owned()),
            buyer: Some(self.plan.buyer(plan)),
            shipping_address: Some(self.plan.address(plan)),
            items,
        })
    }

    /// An order lives through its stages, spread over its age.
    async fn order(
        &self,
        transaction: &dyn Transaction,
        plan: &OrderPlan,
        request: &place_order::Request,
        shelves: &mut Shelves,
    ) -> Result<(), SeedError> {
        let placed_at = transaction.now() - plan.age;
        let after = |eighths| placed_at + plan.age * eighths / 8;
        let placed = place_order(transaction, transaction, self.randomness, request, placed_at)
            .await
            .map_err(refused)?;
        let order = OrderRef::Id(placed.id);
        let settle = |step, at| settle_order(transaction, transaction, &order, step, at);
        if !matches!(plan.stage, Stage::Placed | Stage::CalledOff) {
            settle(Settlement::Pay, after(1)).await.map_err(refused)?;
        }
        match plan.stage {
            Stage::Placed | Stage::Paid => {}
            Stage::CalledOff | Stage::PaidAndCalledOff => {
                settle(Settlement::Cancel, after(2)).await.map_err(refused)?;
                for item in &request.items {
                    if let Some((changed, _)) = shelves.get_mut(&(item.seller, item.offer)) {
                        *changed = after(2);
                    }
                }
            }
            Stage::Shipped => self.ship(transaction, plan, placed.id, after(3)).await?,
            Stage::Delivered => {
                self.ship(transaction, plan, placed.id, after(3)).await?;
                settle(Settlement::Deliver, after(6)).await.map_err(refused)?;
            }
        }
        Ok(())
    }

    async fn ship(
        &self,
        transaction: &dyn Transaction,
        plan: &OrderPlan,
        order: OrderId,
        at: DateTime<Utc>,
    ) -> Result<(), SeedError> {
        let Some(shop) = self.shops.get(plan.seller) else {
            return Ok(());
        };
        let (carrier, number, is_known) = plan.parcel();
        let report = Report {
            order: OrderRef::Id(order),
            carrier,
            tracking_number: TrackingNumber::new(number).map_err(invalid)?,
            item_ids: Vec::new(),
        };
        let sighting = is_known.then(|| Sighting {
            status: TrackingStatus::InTransit,
            at: Some(at),
            raw_code: "TRANSIT".to_owned(),
        });
        let (seller, randomness) = (shop.id, self.randomness);
        record_report(
            transaction,
            transaction,
            randomness,
            seller,
            &report,
            sighting,
            at,
        )
        .await
        .map_err(refused)?;
        // That was days ago, and so was the mail.
        Ok(transaction.forget_mails(order).await?)
    }
}

fn lines(plan: &OrderPlan, shop: &Shop, at: DateTime<Utc>, shelves: &mut Shelves) -> Option<Vec<Line>> {
    let mut lines = Vec::new();
    // Every order begins to look at another place, so that many offers are bought.
    let offers = shop
        .offers
        .iter()
        .cycle()
        .skip(plan.n * 5)
        .take(shop.offers.len());
    for offer in offers {
        let quantity = plan.quantity(lines.len());
        let Some((changed, left)) = shelves.get_mut(&(shop.id, offer.id)) else {
            continue;
        };
        if lines.len() == plan.lines() || *changed >= at || *left < quantity {
            continue;
        }
        if plan.kind != Kind::Test {
            (*changed, *left) = (at, *left - quantity);
        }
        lines.push(Line {
            seller: shop.id,
            offer: offer.id,
            quantity,
            unit_price: None,
            title: None,
            sku: None,
        });
    }
    (!lines.is_empty()).then_some(lines)
}
