//! A marketplace at work: buyers order, sellers ship and change their offers, applications subscribe.

use futures_util::join;
use kernel::{OfferId, Randomness, SellerId};
use oauth::ClientId;
use offers::{OfferPatch, Stock};
use orders::{Buyer, Carrier, OrderId, OrderRef, TrackingNumber};
use usecases::{create_subscription::Wanted, place_order, settle_order::Settlement, ship_order};
use webhooks::{
    AddressPolicy, LaneKey, NewSubscription, SubscriptionId, WebhookEvent, WebhookSecret, WebhookUrl,
};

use super::{client::Client, deed::Deed, receivers::Manner};
use crate::{Chance, Database, Met, Simulator};

/// Pieces of an offer that orders take.
pub(crate) const PIECES: i32 = 12;
/// The first stock that a seller sets; each further one is greater by one.
pub(crate) const FIRST_STOCK: i64 = 1_000;

/// Who is there from the beginning, and with what.
#[derive(Debug, Clone)]
pub(crate) struct Market {
    pub(crate) sellers: [SellerId; 2],
    /// An application of the first seller's, which has it and the other one as its users.
    pub(crate) application: ClientId,
    /// What orders take from.
    pub(crate) offers: Vec<(SellerId, OfferId)>,
    /// What its seller changes.
    pub(crate) changed: (SellerId, OfferId),
    /// Subscriptions with what they hear of.
    pub(crate) lanes: Vec<(LaneKey, Vec<WebhookEvent>)>,
    /// How receivers behave, by their addresses.
    pub(crate) manners: Vec<(String, Manner)>,
}

fn address(number: usize) -> String {
    format!("https://receiver{number}.example/")
}

fn url(number: usize) -> Option<WebhookUrl> {
    WebhookUrl::parse(address(number), AddressPolicy::Public).ok()
}

impl Market {
    /// Puts everything in place.
    pub(crate) fn open(simulator: &Simulator, database: &Database) -> Self {
        use WebhookEvent::{OrderCreated, OrderDelivered, OrderPaid, OrderShipped};

        let sellers = [database.found_seller(), database.found_seller()];
        let [first, second] = sellers;
        let application = database.found_application(first);
        let others = database.found_application(second);
        for (seller, client_id) in [(second, application), (first, others)] {
            database.found_connection(seller, client_id);
        }
        let pieces = i64::from(PIECES);
        let offers = vec![
            (first, database.found_offer(first, pieces)),
            (first, database.found_offer(first, pieces)),
            (second, database.found_offer(second, pieces)),
        ];
        let mut market = Self {
            sellers,
            application,
            offers,
            changed: (first, database.found_offer(first, 1)),
            lanes: Vec::new(),
            manners: Vec::new(),
        };
        market.subscribe(
            simulator,
            database,
            (first, application),
            WebhookEvent::ALL.to_vec(),
        );
        market.subscribe(
            simulator,
            database,
            (second, application),
            vec![OrderCreated, OrderPaid],
        );
        market.subscribe(
            simulator,
            database,
            (first, others),
            vec![OrderShipped, OrderDelivered],
        );
        market
    }

    fn subscribe(
        &mut self,
        simulator: &Simulator,
        database: &Database,
        (seller, client_id): (SellerId, ClientId),
        events: Vec<WebhookEvent>,
    ) {
        let number = self.lanes.len();
        let chance = Chance(simulator.clone());
        let Some(url) = url(number) else { return };
        let manner = simulator.draw(|chance| match chance.u8(..8) {
            0 => Manner::Dead,
            1..=3 => Manner::Moody,
            _ => Manner::Sound,
        });
        self.manners.push((address(number), manner));
        let lane = database.found_subscription(NewSubscription {
            seller,
            client_id,
            id: chance.uuid().into(),
            url,
            events: events.clone(),
            secret: WebhookSecret::from_random(&chance.secret()),
            created_at: simulator.now(),
        });
        self.lanes.push((lane, events));
    }
}

/// A buyer orders and pays; then it is shipped, called off, or both at once.
pub(crate) async fn buy(client: Client, market: Market, number: usize) {
    let simulator = client.fleet.simulator.clone();
    simulator.pause(0, 6_000).await;
    let name = format!("order-{number}");
    let (request, sellers) = simulator.draw(|chance| request(chance, &market, &name));
    let placed = client.ask(&name, Deed::Place(request)).await;
    let Some(order) = placed.and_then(|reply| reply.body.parse::<OrderId>().ok()) else {
        return;
    };
    let settle = async |step: Settlement| {
        let name = format!("{name}-{step:?}").to_lowercase();
        client.ask(&name, Deed::Settle(order, step)).await
    };
    if simulator.happens(100) {
        settle(Settlement::Cancel).await;
    }
    settle(Settlement::Pay).await;
    let ship = async || {
        let Some(report) = report(order, &name) else {
            return;
        };
        for seller in sellers.iter().take(1) {
            client
                .ask(&format!("{name}-ship"), Deed::Ship(*seller, report.clone()))
                .await;
        }
    };
    match simulator.draw(|chance| chance.u8(..5)) {
        0 => drop(settle(Settlement::Cancel).await),
        1 => drop(settle(Settlement::Deliver).await),
        lot @ (2 | 3) => {
            simulator.count(Met::SettledWhileShipped);
            let step = if lot == 2 {
                Settlement::Cancel
            } else {
                Settlement::Deliver
            };
            drop(join!(settle(step), ship()));
        }
        _ => ship().await,
    }
}

fn request(chance: &mut fastrand::Rng, market: &Market, name: &str) -> (place_order::Request, Vec<SellerId>) {
    let number = chance.usize(1..=2);
    let lines = chance.choose_multiple(market.offers.iter(), number);
    let line = |(seller, offer): &(SellerId, OfferId), quantity| place_order::Line {
        seller: *seller,
        offer: *offer,
        quantity,
        unit_price: None,
        title: None,
        sku: None,
    };
    let mut sellers: Vec<_> = lines.iter().map(|(seller, _)| *seller).collect();
    sellers.sort_unstable();
    sellers.dedup();
    let items = lines
        .into_iter()
        .map(|place| line(place, chance.i32(1..=5)))
        .collect();
    let request = place_order::Request {
        number: None,
        is_test: false,
        payment_method: None,
        delivery_method: Some(name.to_owned()),
        buyer: Some(Buyer {
            email: Some("buyer@example.com".to_owned()),
            ..Buyer::default()
        }),
        shipping_address: None,
        items,
    };
    (request, sellers)
}

fn report(order: OrderId, name: &str) -> Option<ship_order::Report> {
    Some(ship_order::Report {
        order: OrderRef::Id(order),
        carrier: Carrier::Inpost,
        tracking_number: TrackingNumber::new(name.to_uppercase()).ok()?,
        item_ids: Vec::new(),
    })
}

/// A seller sets one stock after the other.
pub(crate) async fn change_stock(client: Client, market: Market, number: i64) {
    let simulator = client.fleet.simulator.clone();
    for change in 0..number {
        let patch = OfferPatch {
            stock: Stock::new(FIRST_STOCK + change).ok(),
            ..OfferPatch::default()
        };
        let (seller, offer) = market.changed;
        client
            .ask(&format!("stock-{change}"), Deed::Patch(seller, offer, patch))
            .await;
        simulator.pause(0, 3_000).await;
    }
}

/// An application subscribes for a while.
pub(crate) async fn subscribe_for_a_while(client: Client, market: Market) {
    let simulator = client.fleet.simulator.clone();
    simulator.pause(0, 5_000).await;
    let [seller, _] = market.sellers;
    let Some(url) = url(market.lanes.len()) else {
        return;
    };
    let wanted = Wanted {
        url,
        events: WebhookEvent::ALL.to_vec(),
    };
    let pair = (seller, market.application);
    let made = client
        .ask("subscribe", Deed::Subscribe(pair.0, pair.1, wanted))
        .await;
    let Some(id) = made.and_then(|reply| reply.body.parse::<SubscriptionId>().ok()) else {
        return;
    };
    simulator.pause(0, 8_000).await;
    let ended = client
        .ask("unsubscribe", Deed::Unsubscribe(pair.0, pair.1, id))
        .await;
    if ended.is_some_and(|reply| reply.is_success()) {
        simulator.count(Met::Unsubscribed);
        client
            .fleet
            .history
            .seen()
            .unsubscribed
            .push((id, simulator.now()));
    }
}
