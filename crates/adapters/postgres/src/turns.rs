//! Turns: work waits in this process for the rows that it will lock and for a place in its sellers' shares of
//! the pool, and its application's, and only then takes a connection.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use kernel::{SellerId, ShareTaken, StoreError};
use oauth::ClientId;
use parking_lot::Mutex;
use tokio::{sync::oneshot, time::timeout};
use usecases::{LockSet, Row};

/// How much work may wait for a row, and for a seller's share; more fails at once. The marketplace's may wait behind
/// twice as much for a row, so that a seller's requests alone do not get it refused.
const ROW_QUEUE: usize = 256;
const SHARE_QUEUE: usize = 1024;
/// How often later work may pass the longest waiting at a row. Then its rows are kept free for it.
const PASSES: u32 = 64;

/// The queues of one process. Work begins when all its places are free, and holds none while it waits: an
/// order for two offers does not block the one while it waits for the other.
///
/// The order is that of arrival, but work passes others that it does not delay now. Work for two busy rows of
/// a seller would never find both free: it is passed only so often. Rows of several sellers are not kept
/// free, nor are shares: what is busy at one seller would stop another. Nor is a row whose waiter's share is full at
/// the last pass: what a seller sends would stop the marketplace.
pub(crate) struct Turns(Mutex<State>);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Place {
    Row(Row),
    Share(SellerId),
    /// The marketplace's at this seller.
    MarketplaceShare(SellerId),
    /// An application's at all its sellers.
    ApplicationShare(ClientId),
    /// Its part of a seller's share: half, rounded up. The seller's other applications, and the panel, have the rest.
    PartOfShare(SellerId, ClientId),
}

type Places = Arc<[Place]>;

/// In the order of arrival.
type Ticket = u64;

#[derive(Default)]
struct State {
    /// The most transactions of one seller, and of the marketplace at one seller.
    share: usize,
    /// The most of one application.
    of_application: usize,
    arrived: Ticket,
    /// Only those that somebody holds or waits for.
    queues: HashMap<Place, Queue>,
    waiting: HashMap<Ticket, Waiter>,
}

#[derive(Default)]
struct Queue {
    taken: usize,
    waiting: BTreeSet<Ticket>,
    /// Later work may not pass this one.
    kept_for: Option<Ticket>,
}

struct Waiter {
    places: Places,
    /// The index of a place that was not free at the last look: the next look begins with it.
    busy: usize,
    passed: u32,
    begin: oneshot::Sender<()>,
}

/// Places taken, or waited for; given up when it is dropped.
pub(crate) struct Admission {
    turns: Arc<Turns>,
    ticket: Ticket,
    places: Places,
}

impl Turns {
    /// `share` is at least 1, and as large for an application.
    pub(crate) fn new(share: usize) -> Arc<Self> {
        Self::with_share_of_applications(share, share)
    }

    /// Both are at least 1.
    pub(crate) fn with_share_of_applications(share: usize, of_application: usize) -> Arc<Self> {
        Arc::new(Self(Mutex::new(State {
            share,
            of_application,
            ..State::default()
        })))
    }

    /// Waits until all places are free, no longer than `limit`. Nothing is taken if the future is dropped.
    pub(crate) async fn take(
        self: &Arc<Self>,
        locks: &LockSet,
        limit: Duration,
    ) -> Result<Admission, StoreError> {
        let rows = locks.rows.iter().cloned().map(Place::Row);
        let share = if locks.for_marketplace {
            Place::MarketplaceShare
        } else {
            Place::Share
        };
        let shares = locks.sellers.iter().copied().map(share);
        let application = locks.application.into_iter().flat_map(|client_id| {
            let part = move |seller| Place::PartOfShare(seller, client_id);
            let parts = locks.sellers.iter().copied().map(part);
            parts.chain([Place::ApplicationShare(client_id)])
        });
        // Shares first: where one is full, no row is looked up.
        let places = shares.chain(application).chain(rows).collect();
        let (admission, admitted) = self.arrive(places, locks.for_marketplace)?;
        // The sender is dropped only after it has sent.
        match timeout(limit, admitted).await {
            Ok(_) => Ok(admission),
            Err(_) => Err(admission.refusal(limit)),
        }
    }

    fn arrive(
        self: &Arc<Self>,
        places: Places,
        for_marketplace: bool,
    ) -> Result<(Admission, oneshot::Receiver<()>), StoreError> {
        let mut state = self.0.lock();
        state.arrived += 1;
        let (ticket, (begin, admitted)) = (state.arrived, oneshot::channel());
        let busy = state.find_busy(ticket, &places, 0);
        let is_free = busy.is_none();
        let is_full = |place: &&Place| state.is_full(place, for_marketplace);
        if !is_free && let Some(full) = places.iter().find(is_full) {
            // Only work for the same row, seller or application is refused.
            return Err(no_turn(full, || format!("too many others wait for {full:?}")));
        }
        for place in places.iter() {
            let queue = state.queues.entry(place.clone()).or_default();
            queue.waiting.insert(ticket);
        }
        let waiter = Waiter {
            places: Arc::clone(&places),
            busy: busy.unwrap_or_default(),
            passed: 0,
            begin,
        };
        state.waiting.insert(ticket, waiter);
        if is_free {
            let passed = state.admit(ticket);
            state.pass(passed);
        }
        let turns = Arc::clone(self);
        Ok((
            Admission {
                turns,
                ticket,
                places,
            },
            admitted,
        ))
    }
}

impl Admission {
    /// Why it was not admitted within this time.
    fn refusal(&self, limit: Duration) -> StoreError {
        let reason = || format!("no turn within {} ms", limit.as_millis());
        let state = self.turns.0.lock();
        let is_busy = |place: &&Place| {
            state
                .find_busy(self.ticket, std::slice::from_ref(*place), 0)
                .is_some()
        };
        // Rows, which are the last, before shares.
        let busy = self.places.iter().rfind(is_busy);
        busy.map_or_else(
            || StoreError::Unavailable(reason().into()),
            |busy| no_turn(busy, reason),
        )
    }
}

/// Refuses work for want of this place. A share is the caller's own; rows are everybody's.
fn no_turn(busy: &Place, reason: impl FnOnce() -> String) -> StoreError {
    StoreError::Unavailable(match busy {
        Place::Share(_) | Place::ApplicationShare(_) | Place::PartOfShare(..) => ShareTaken.into(),
        Place::Row(_) | Place::MarketplaceShare(_) => reason().into(),
    })
}

impl State {
    fn has_room(&self, place: &Place, queue: &Queue) -> bool {
        let room = match place {
            Place::Row(_) => 1,
            Place::PartOfShare(..) => self.share.div_ceil(2),
            Place::ApplicationShare(_) => self.of_application,
            Place::Share(_) | Place::MarketplaceShare(_) => self.share,
        };
        queue.taken < room
    }

    /// The index of a place that is not free for this ticket, if there is one; `last` is looked at first.
    fn find_busy(&self, ticket: Ticket, places: &[Place], last: usize) -> Option<usize> {
        let is_taken = |place: &Place| {
            self.queues.get(place).is_some_and(|queue| {
                !self.has_room(place, queue) || queue.kept_for.is_some_and(|longest| ticket > longest)
            })
        };
        if places.get(last).is_some_and(is_taken) {
            return Some(last);
        }
        places.iter().position(is_taken)
    }

    /// Admits all who can begin now that these places were given up, in the order of arrival. Place by place, a batch of
    /// many rows would pass an earlier order for one of them.
    fn admit_waiting(&mut self, places: &[Place]) {
        // Admitting others never frees a place, so each waiter is checked once.
        let queues = places.iter().filter_map(|place| self.queues.get(place));
        let mut waiting: Vec<Ticket> = queues.flat_map(|queue| &queue.waiting).copied().collect();
        waiting.sort_unstable();
        waiting.dedup();
        let mut passed = Vec::new();
        for ticket in waiting {
            let Some(waiter) = self.waiting.get(&ticket) else {
                continue;
            };
            match self.find_busy(ticket, &waiter.places, waiter.busy) {
                None => passed.extend(self.admit(ticket)),
                Some(busy) => {
                    if let Some(waiter) = self.waiting.get_mut(&ticket) {
                        waiter.busy = busy;
                    }
                }
            }
        }
        // All places that others take are taken by now.
        self.pass(passed);
    }

    fn is_full(&self, place: &Place, for_marketplace: bool) -> bool {
        let most = match place {
            Place::Row(_) if for_marketplace => 2 * ROW_QUEUE,
            Place::Row(_) => ROW_QUEUE,
            Place::PartOfShare(..) => SHARE_QUEUE / 2,
            _ => SHARE_QUEUE,
        };
        self.queues
            .get(place)
            .is_some_and(|queue| queue.waiting.len() >= most)
    }

    /// Takes the places of a waiter, and returns the waiters that it passes.
    fn admit(&mut self, ticket: Ticket) -> BTreeSet<Ticket> {
        let mut passed = BTreeSet::new();
        let Some(waiter) = self.leave(ticket) else {
            return passed;
        };
        for place in waiter.places.iter() {
            if let Some(queue) = self.queues.get_mut(place) {
                queue.taken += 1;
                if matches!(place, Place::Row(_)) {
                    passed.extend(queue.waiting.first().copied().filter(|longest| *longest < ticket));
                }
            }
        }
        // Fails if the waiter is just being dropped: `Admission::drop` then gives the places up.
        let _ = waiter.begin.send(());
        passed
    }

    /// Takes a waiter out of all queues.
    fn leave(&mut self, ticket: Ticket) -> Option<Waiter> {
        let waiter = self.waiting.remove(&ticket)?;
        for place in waiter.places.iter() {
            if let Some(queue) = self.queues.get_mut(place) {
                queue.waiting.remove(&ticket);
                queue.kept_for = queue.kept_for.filter(|longest| *longest != ticket);
            }
        }
        Some(waiter)
    }

    fn pass(&mut self, tickets: impl IntoIterator<Item = Ticket>) {
        for ticket in tickets {
            let Some(waiter) = self.waiting.get_mut(&ticket) else {
                continue;
            };
            waiter.passed += 1;
            if waiter.passed < PASSES {
                continue;
            }
            let places = Arc::clone(&waiter.places);
            let is_row = |place: &&Place| matches!(place, Place::Row(_));
            let (rows, shares): (Vec<_>, Vec<_>) = places.iter().partition(is_row);
            let is_full = |share: &Place| {
                self.queues
                    .get(share)
                    .is_some_and(|queue| !self.has_room(share, queue))
            };
            let is_of_seller =
                |share: &&&Place| matches!(share, Place::Share(_) | Place::MarketplaceShare(_));
            if shares.iter().filter(is_of_seller).count() > 1 || shares.into_iter().any(is_full) {
                continue;
            }
            for place in rows {
                if let Some(queue) = self.queues.get_mut(place) {
                    queue.kept_for = Some(queue.kept_for.map_or(ticket, |longest| longest.min(ticket)));
                }
            }
        }
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        let mut state = self.turns.0.lock();
        let waited = state.leave(self.ticket);
        for place in self.places.iter() {
            if let Some(queue) = state.queues.get_mut(place) {
                queue.taken -= usize::from(waited.is_none());
            }
        }
        // One that still waited held nothing but, perhaps, rows kept free for it. Without those nobody else
        // is checked: a crowd that gives up must not cost a check of all others for each of them.
        if waited.is_none_or(|waiter| waiter.passed >= PASSES) {
            state.admit_waiting(&self.places);
        }
        for place in self.places.iter() {
            let is_unused = |queue: &Queue| queue.taken == 0 && queue.waiting.is_empty();
            if state.queues.get(place).is_some_and(is_unused) {
                state.queues.remove(place);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Poll;

    use futures_util::{FutureExt, future::BoxFuture, poll};
    use kernel::OfferId;
    use uuid::Uuid;

    use super::*;

    fn offer(seller: u128, id: u128) -> (SellerId, OfferId) {
        (Uuid::from_u128(seller).into(), Uuid::from_u128(id).into())
    }

    fn rows(offers: &[(SellerId, OfferId)]) -> LockSet {
        LockSet {
            sellers: [].into(),
            ..LockSet::of_offers(offers.iter().copied())
        }
    }

    type Taking = BoxFuture<'static, Result<Admission, StoreError>>;

    fn take(turns: &Arc<Turns>, locks: LockSet) -> Taking {
        let turns = Arc::clone(turns);
        async move { turns.take(&locks, Duration::from_mins(1)).await }.boxed()
    }

    async fn admitted(taking: &mut Taking) -> Admission {
        match poll!(taking) {
            Poll::Ready(admitted) => admitted.unwrap(),
            Poll::Pending => panic!("it waits"),
        }
    }

    fn is_empty(turns: &Turns) -> bool {
        let state = turns.0.lock();
        state.queues.is_empty() && state.waiting.is_empty()
    }

    #[tokio::test]
    async fn who_waits_holds_nothing_is_admitted_in_order_and_leaves_nothing_behind() {
        let turns = Turns::new(1);
        let (hot, other) = (offer(1, 1), offer(2, 2));
        let first = take(&turns, rows(&[hot])).await.unwrap();
        let (mut both, mut second) = (take(&turns, rows(&[hot, other])), take(&turns, rows(&[hot])));
        assert!(poll!(&mut both).is_pending() && poll!(&mut second).is_pending());
        // The other offer is free meanwhile.
        drop(admitted(&mut take(&turns, rows(&[other]))).await);
        drop(first);
        let both_held = admitted(&mut both).await;
        assert!(poll!(&mut second).is_pending() && poll!(take(&turns, rows(&[other]))).is_pending());
        drop(second);
        let mut third = take(&turns, rows(&[hot]));
        assert!(poll!(&mut third).is_pending());
        drop(both_held);
        drop(admitted(&mut third).await);
        assert!(is_empty(&turns));
    }

    #[tokio::test]
    async fn work_for_two_busy_rows_is_passed_only_so_often() {
        let turns = Turns::new(1);
        let (one, two) = (offer(1, 1), offer(1, 2));
        let mut held = [
            take(&turns, rows(&[one])).await.unwrap(),
            take(&turns, rows(&[two])).await.unwrap(),
        ];
        let mut both = take(&turns, rows(&[one, two]));
        assert!(poll!(&mut both).is_pending());
        let mut passes = 0;
        loop {
            let place = passes % 2;
            let mut next = take(&turns, rows(&[[one, two][place]]));
            assert!(poll!(&mut next).is_pending());
            // There is always another one who wants the row.
            held[place] = match poll!(
                async {
                    drop(std::mem::replace(
                        &mut held[place],
                        take(&turns, rows(&[])).await.unwrap(),
                    ));
                    next.await
                }
                .boxed()
            ) {
                Poll::Ready(admitted) => admitted.unwrap(),
                Poll::Pending => break,
            };
            passes += 1;
            // Tokio lets a task receive only so often at a time.
            tokio::task::yield_now().await;
        }
        assert_eq!(passes, usize::try_from(PASSES).unwrap());
        drop(held);
        drop(admitted(&mut both).await);
        assert!(is_empty(&turns));
    }

    #[tokio::test]
    async fn work_that_waits_for_one_seller_stops_no_other() {
        let turns = Turns::new(1);
        let (hot, other) = (offer(1, 1), offer(2, 2));
        let held = take(&turns, LockSet::of_offers([hot])).await.unwrap();
        let mut both = take(&turns, LockSet::of_offers([hot, other]));
        assert!(poll!(&mut both).is_pending());
        for _ in 0..=PASSES {
            drop(admitted(&mut take(&turns, LockSet::of_offers([other]))).await);
            // Tokio lets a task receive only so often at a time.
            tokio::task::yield_now().await;
        }
        drop(held);
        drop(admitted(&mut both).await);
        assert!(is_empty(&turns));
    }

    #[tokio::test]
    async fn the_marketplace_does_not_wait_behind_what_a_seller_sends() {
        let turns = Turns::new(1);
        let (hot, other) = (offer(1, 1), offer(1, 2));
        let held = take(&turns, LockSet::of_offers([hot])).await.unwrap();
        let order = |offer| LockSet {
            for_marketplace: true,
            ..LockSet::of_offers([offer])
        };
        // It waits for its rows, and has a share as well.
        let placed = admitted(&mut take(&turns, order(other))).await;
        for waits in [order(hot), order(offer(1, 3)), LockSet::of_seller(other.0)] {
            assert!(poll!(take(&turns, waits)).is_pending());
        }
        drop(placed);
        // A row is not kept free for a waiter that has no place in the seller's share yet.
        let mut of_seller = take(&turns, LockSet::of_offers([other]));
        assert!(poll!(&mut of_seller).is_pending());
        for _ in 0..=PASSES {
            drop(admitted(&mut take(&turns, order(other))).await);
            // Tokio lets a task receive only so often at a time.
            tokio::task::yield_now().await;
        }
        drop((held, of_seller));
        assert!(is_empty(&turns));
        // Nor when that is given up and taken by another at the moment of the last pass.
        let turns = Turns::new(2);
        let beside = take(&turns, LockSet::of_seller(other.0)).await.unwrap();
        let held = take(&turns, LockSet::of_offers([hot])).await.unwrap();
        let mut both = take(&turns, LockSet::of_offers([hot, other]));
        assert!(poll!(&mut both).is_pending());
        for _ in 2..PASSES {
            drop(admitted(&mut take(&turns, order(other))).await);
            tokio::task::yield_now().await;
        }
        let placed = admitted(&mut take(&turns, order(other))).await;
        let (mut last, mut next) = (
            take(&turns, order(hot)),
            take(&turns, LockSet::of_seller(other.0)),
        );
        assert!(poll!(&mut last).is_pending() && poll!(&mut next).is_pending());
        drop(held);
        drop(admitted(&mut last).await);
        let taken = admitted(&mut next).await;
        drop(admitted(&mut take(&turns, order(hot))).await);
        drop((beside, placed, taken, both));
        assert!(is_empty(&turns));
    }

    #[tokio::test]
    async fn an_application_leaves_connections_to_other_sellers_and_to_its_sellers_others() {
        let turns = Turns::new(4);
        let [hostile, other] = [1, 2].map(|id| ClientId::from(Uuid::from_u128(id)));
        let by = |application, seller| {
            let seller = Uuid::from_u128(seller).into();
            take(&turns, LockSet::default().by_application(seller, application))
        };
        let mut held = Vec::new();
        for seller in [1, 1, 2, 3] {
            held.push(admitted(&mut by(hostile, seller)).await);
        }
        // Half of the first seller's, and its own whole share.
        let (mut of_seller, mut of_own) = (by(hostile, 1), by(hostile, 4));
        assert!(poll!(&mut of_seller).is_pending() && poll!(&mut of_own).is_pending());
        drop((
            admitted(&mut by(other, 1)).await,
            admitted(&mut by(other, 4)).await,
        ));
        let elsewhere = LockSet::default().by_application(Uuid::from_u128(5).into(), hostile);
        let refused = turns.take(&elsewhere, Duration::ZERO).await;
        assert!(matches!(refused, Err(StoreError::Unavailable(cause)) if cause.is::<ShareTaken>()));
        drop(held.pop());
        drop(admitted(&mut of_own).await);
        assert!(poll!(&mut of_seller).is_pending());
        drop(held);
        drop(admitted(&mut of_seller).await);
        assert!(is_empty(&turns));
    }

    /// As a basket of several sellers does that has one of the hundred offers which batches change.
    #[tokio::test]
    async fn who_comes_first_begins_first_however_many_rows_others_wait_for() {
        let many: Vec<_> = (0..100).map(|id| offer(1, id)).collect();
        for _ in 0..20 {
            let turns = Turns::new(1);
            let held = take(&turns, rows(&many)).await.unwrap();
            let mut order = take(&turns, rows(&[many[50], offer(2, 1)]));
            let mut batch = take(&turns, rows(&many));
            assert!(poll!(&mut order).is_pending() && poll!(&mut batch).is_pending());
            drop(held);
            let ordered = admitted(&mut order).await;
            assert!(poll!(&mut batch).is_pending());
            drop(ordered);
            drop(admitted(&mut batch).await);
            // Tokio lets a task receive only so often at a time.
            tokio::task::yield_now().await;
        }
    }

    #[test]
    fn a_look_begins_with_the_place_that_was_taken_at_the_last() {
        let places = [
            Place::Share(Uuid::nil().into()),
            Place::Row(Row::Family(Uuid::nil().into())),
        ];
        let mut state = State {
            share: 1,
            ..State::default()
        };
        assert_eq!(state.find_busy(0, &places, 1), None);
        for place in &places {
            state.queues.entry(place.clone()).or_default().taken = 1;
        }
        assert_eq!(
            [state.find_busy(0, &places, 0), state.find_busy(0, &places, 1)],
            [Some(0), Some(1)]
        );
        state.queues.remove(&places[1]);
        assert_eq!(state.find_busy(0, &places, 1), Some(0));
    }

    /// As batches of offers do that have all but one in common: each is looked at once for every end of
    /// another, not once for each of its rows.
    #[tokio::test]
    async fn a_crowd_for_many_rows_is_looked_at_once() {
        let turns = Turns::new(1);
        let common: Vec<_> = (0..99).map(|id| offer(1, id)).collect();
        let held = take(&turns, rows(&[offer(1, 99)])).await.unwrap();
        let mut crowd: Vec<_> = (0..ROW_QUEUE - 1)
            .map(|_| take(&turns, rows(&[common.as_slice(), &[offer(1, 99)]].concat())))
            .collect();
        for waiting in &mut crowd {
            assert!(poll!(waiting).is_pending());
        }
        let began = std::time::Instant::now();
        for _ in 0..10 {
            drop(admitted(&mut take(&turns, rows(&common))).await);
        }
        // 2 500 looks, each of up to a hundred rows; at once for each row, there would be 250 000.
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
        drop((held, crowd));
        assert!(is_empty(&turns));
    }

    /// Batches of different offers: while the share is full, none of their rows is looked up.
    #[tokio::test]
    async fn a_crowd_for_a_share_is_not_looked_at_row_by_row() {
        let admitting = async |rows: u128| {
            let turns = Turns::new(1);
            let batch = |n: u128| LockSet::of_offers((0..rows).map(|id| offer(1, 100 * n + id)));
            let mut held = take(&turns, batch(0)).await.unwrap();
            let mut crowd: Vec<_> = (1..500).map(|n| take(&turns, batch(n))).collect();
            for waiting in &mut crowd {
                assert!(poll!(waiting).is_pending());
            }
            let began = std::time::Instant::now();
            for waiting in &mut crowd {
                drop(held);
                held = admitted(waiting).await;
                // Tokio lets a task receive only so often at a time.
                tokio::task::yield_now().await;
            }
            let took = began.elapsed();
            drop((held, crowd));
            assert!(is_empty(&turns));
            took
        };
        let (single, batches) = (admitting(1).await, admitting(100).await);
        // Row by row, they would take about fifty times as long.
        assert!(batches < 10 * single, "{batches:?}, {single:?} for single rows");
    }

    #[tokio::test]
    async fn a_full_queue_refuses_its_row_or_its_seller_alone() {
        let turns = Turns::new(2);
        let (hot, other, seller) = (offer(1, 1), offer(1, 2), LockSet::of_seller(offer(1, 1).0));
        let held = take(&turns, LockSet::of_offers([hot])).await.unwrap();
        let mut waiting = Vec::new();
        let mut wait = |locks: &LockSet| {
            let mut taking = take(&turns, locks.clone());
            assert!((&mut taking).now_or_never().is_none());
            waiting.push(taking);
        };
        (0..ROW_QUEUE).for_each(|_| wait(&LockSet::of_offers([hot])));
        let refused = take(&turns, LockSet::of_offers([other, hot])).await;
        assert!(matches!(refused, Err(StoreError::Unavailable(_))));
        // What the seller sends does not keep the marketplace out.
        let of_marketplace = LockSet {
            for_marketplace: true,
            ..LockSet::of_offers([hot])
        };
        let mut placed = take(&turns, of_marketplace);
        assert!(poll!(&mut placed).is_pending());
        // The seller's second place is free, and there is no third one.
        let beside = admitted(&mut take(&turns, LockSet::of_offers([other]))).await;
        (ROW_QUEUE..SHARE_QUEUE).for_each(|_| wait(&seller));
        let refused = take(&turns, seller).await;
        assert!(matches!(refused, Err(StoreError::Unavailable(cause)) if cause.is::<ShareTaken>()));
        drop(admitted(&mut take(&turns, LockSet::of_offers([offer(2, 2)]))).await);
        // The first of those who do not wait for the row.
        drop(beside);
        drop(admitted(&mut waiting[ROW_QUEUE]).await);
        drop((held, waiting, placed));
        assert!(is_empty(&turns));
    }
}
