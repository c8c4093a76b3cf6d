//! Turns: work waits in this process for the rows that it will lock and for a place in its sellers' shares of
//! the pool, and its application's, and only then takes a connection.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use kernel::{RowTaken, SellerId, ShareTaken, StoreError};
use oauth::ClientId;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};
use usecases::{LockSet, Row, own_wait};

/// How much work of sellers, and as much of the marketplace, may wait for a row: neither fills the other's queue. And how
/// much for a seller's share; more fails at once.
const ROW_QUEUE: usize = 256;
const SHARE_QUEUE: usize = 1024;
/// Work at more sellers takes long: it has a place in common, see [`Place::ManySellers`].
const FEW_SELLERS: usize = 8;
/// How often later work may pass the longest waiting at a row. Then its rows are kept free for it.
const PASSES: u32 = 64;
/// How often others may have turns of the marketplace before its longest waiting at a row.
const MARKETPLACE_PASSES: u32 = 4;
/// For how long, or half as long again, rows are kept free for work that waits for others: these may be of another seller.
const KEPT: Duration = Duration::from_millis(200);
/// Who has had a row for longer waits himself, for the database or for a lock of others than this process.
const STUCK: Duration = Duration::from_secs(1);

/// The queues of one process. Work begins when all its places are free, and holds none while it waits: an
/// order for two offers does not block the one while it waits for the other.
///
/// The order is that of arrival, but at a row the marketplace and its sellers take turns, and work passes others that it does
/// not delay now. Work for several busy rows would never find all of them free: it is passed only so often. Then they are kept
/// free for it: later work of its kind waits, and sellers wait where a turn is the marketplace's. Of all that rows are kept
/// for, the oldest goes first, so that no two wait for each other. No row is kept for long, nor beside one that somebody has
/// for long, nor while a share is full, nor of several sellers for a seller's work: what is busy at one would stop another.
pub(crate) struct Turns(Mutex<State>);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Place {
    Row(Row),
    Share(SellerId),
    /// The marketplace's at this seller.
    MarketplaceShare(SellerId),
    /// All work at many sellers: together one place less than a share, so that it does not stop the other work at any of them.
    ManySellers,
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
    /// When it was taken last, if it is a row.
    taken_at: Option<Instant>,
    sellers: Waiting,
    marketplaces: Waiting,
    /// Whether the marketplace had the last turn.
    was_marketplaces: bool,
}

#[derive(Default)]
struct Waiting {
    tickets: BTreeSet<Ticket>,
    /// Later work may not pass this one.
    kept_for: Option<Ticket>,
}

/// Who looks for free places.
#[derive(Clone, Copy)]
struct Comer {
    ticket: Ticket,
    for_marketplace: bool,
    has_rows_kept: bool,
}

struct Waiter {
    places: Places,
    for_marketplace: bool,
    /// The index of a place that was not free at the last look: the next look begins with it.
    busy: usize,
    passed: u32,
    /// Since when its rows are kept free.
    kept_since: Option<Instant>,
    begin: oneshot::Sender<()>,
}

impl Waiter {
    const fn comer(&self, ticket: Ticket) -> Comer {
        Comer {
            ticket,
            for_marketplace: self.for_marketplace,
            has_rows_kept: self.kept_since.is_some(),
        }
    }
}

impl Waiting {
    /// False sorts first.
    fn in_order(&self, is_after: bool) -> impl Iterator<Item = (bool, Ticket)> {
        self.tickets.iter().map(move |ticket| (is_after, *ticket))
    }
}

impl Queue {
    const fn of(&mut self, for_marketplace: bool) -> &mut Waiting {
        if for_marketplace {
            &mut self.marketplaces
        } else {
            &mut self.sellers
        }
    }

    const fn waiting(&self, for_marketplace: bool) -> &Waiting {
        if for_marketplace {
            &self.marketplaces
        } else {
            &self.sellers
        }
    }

    /// Whether it is kept for others.
    fn is_kept_from(&self, comer: Comer) -> bool {
        let is_older = |kept_for: Option<Ticket>| kept_for.is_some_and(|kept| kept < comer.ticket);
        let goes_first = |kept| comer.has_rows_kept && comer.ticket < kept;
        let kept_for = self.marketplaces.kept_for;
        is_older(self.sellers.kept_for)
            || if comer.for_marketplace {
                is_older(kept_for)
            } else {
                !self.was_marketplaces && kept_for.is_some_and(|kept| !goes_first(kept))
            }
    }
}

/// Places taken, or waited for; given up when it is dropped.
pub(crate) struct Admission {
    turns: Arc<Turns>,
    ticket: Ticket,
    places: Places,
    for_marketplace: bool,
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
        let many = (locks.sellers.len() > FEW_SELLERS).then_some(Place::ManySellers);
        let application = locks.application.into_iter().flat_map(|client_id| {
            let part = move |seller| Place::PartOfShare(seller, client_id);
            let parts = locks.sellers.iter().copied().map(part);
            parts.chain([Place::ApplicationShare(client_id)])
        });
        // Shares first: where one is full, no row is looked up.
        let places = shares.chain(many).chain(application).chain(rows).collect();
        let (admission, admitted) = self.arrive(places, locks.for_marketplace)?;
        let Some(mut admitted) = admitted else {
            return Ok(admission);
        };
        let _own_wait = locks.is_own().then(own_wait::begin);
        let waiting = async {
            // The sender is dropped only after it has sent.
            while timeout(KEPT / 2, &mut admitted).await.is_err() {
                admission.give_up_kept_rows();
            }
        };
        match timeout(limit, waiting).await {
            Ok(()) => Ok(admission),
            Err(_) => admission.refusal(limit).map_or(Ok(admission), Err),
        }
    }

    /// Takes the places, or waits for them: until something is received.
    fn arrive(
        self: &Arc<Self>,
        places: Places,
        for_marketplace: bool,
    ) -> Result<(Admission, Option<oneshot::Receiver<()>>), StoreError> {
        let mut state = self.0.lock();
        state.arrived += 1;
        let ticket = state.arrived;
        let admission = |places| Admission {
            turns: Arc::clone(self),
            ticket,
            places,
            for_marketplace,
        };
        let comer = Comer {
            ticket,
            for_marketplace,
            has_rows_kept: false,
        };
        let Some(busy) = state.find_busy(comer, &places, 0) else {
            let passed = state.occupy(ticket, &places, for_marketplace);
            state.pass(passed);
            return Ok((admission(places), None));
        };
        let is_full = |place: &&Place| state.is_full(place, for_marketplace);
        if let Some(full) = places.iter().find(is_full) {
            // Only work for the same row, seller or application is refused.
            let reason = || format!("too many others wait for {full:?}");
            return Err(no_turn(full, for_marketplace, reason));
        }
        for place in places.iter() {
            let queue = state.queues.entry(place.clone()).or_default();
            queue.of(for_marketplace).tickets.insert(ticket);
        }
        let (begin, admitted) = oneshot::channel();
        let waiter = Waiter {
            places: Arc::clone(&places),
            for_marketplace,
            busy,
            passed: 0,
            kept_since: None,
            begin,
        };
        state.waiting.insert(ticket, waiter);
        Ok((admission(places), Some(admitted)))
    }
}

impl Admission {
    /// Others have their turns at rows that were kept long enough.
    fn give_up_kept_rows(&self) {
        let mut state = self.turns.0.lock();
        let Some(waiter) = state.waiting.get_mut(&self.ticket) else {
            return;
        };
        if waiter.kept_since.is_some_and(|since| since.elapsed() >= KEPT) {
            (waiter.kept_since, waiter.passed) = (None, 0);
            state.keep_no_more(self.ticket, &self.places);
            state.admit_waiting(&self.places);
        }
    }

    /// Why it was not admitted within this time; None if it was in this moment.
    fn refusal(&self, limit: Duration) -> Option<StoreError> {
        let reason = || format!("no turn within {} ms", limit.as_millis());
        let state = self.turns.0.lock();
        let comer = state.waiting.get(&self.ticket)?.comer(self.ticket);
        let is_busy = |place: &&Place| state.find_busy(comer, std::slice::from_ref(*place), 0).is_some();
        // Rows, which are the last, before shares.
        Some(match self.places.iter().rfind(is_busy) {
            Some(busy) if !state.is_held_for(STUCK, busy) => no_turn(busy, self.for_marketplace, reason),
            _ => StoreError::Unavailable(reason().into()),
        })
    }
}

/// Refuses work for want of this place. That is no failure of the service where a share is the caller's own, or a row that of a
/// seller's request; an order that cannot be placed is one.
fn no_turn(busy: &Place, for_marketplace: bool, reason: impl FnOnce() -> String) -> StoreError {
    StoreError::Unavailable(match busy {
        Place::Share(_) | Place::ApplicationShare(_) | Place::PartOfShare(..) => ShareTaken.into(),
        Place::Row(_) if !for_marketplace => RowTaken.into(),
        Place::Row(_) | Place::MarketplaceShare(_) | Place::ManySellers => reason().into(),
    })
}

impl State {
    /// Whether it is a row that somebody has had for longer.
    fn is_held_for(&self, time: Duration, row: &Place) -> bool {
        let queue = self.queues.get(row).filter(|queue| queue.taken > 0);
        queue.is_some_and(|queue| queue.taken_at.is_some_and(|taken_at| taken_at.elapsed() > time))
    }

    fn has_room(&self, place: &Place, queue: &Queue) -> bool {
        let room = match place {
            Place::Row(_) => 1,
            Place::PartOfShare(..) => self.share.div_ceil(2),
            Place::ApplicationShare(_) => self.of_application,
            Place::ManySellers => self.share.saturating_sub(1).max(1),
            Place::Share(_) | Place::MarketplaceShare(_) => self.share,
        };
        queue.taken < room
    }

    /// The index of a place that is not free for this one, if there is one; `last` is looked at first.
    fn find_busy(&self, comer: Comer, places: &[Place], last: usize) -> Option<usize> {
        let is_taken = |place: &Place| {
            let queue = self.queues.get(place);
            queue.is_some_and(|queue| !self.has_room(place, queue) || queue.is_kept_from(comer))
        };
        if places.get(last).is_some_and(is_taken) {
            return Some(last);
        }
        places.iter().position(is_taken)
    }

    /// Admits all who can begin now that these places were given up: first those whose turn it is at a row, each in the order of arrival. Place by place, a batch of many rows would pass an earlier order for one of them.
    fn admit_waiting(&mut self, places: &[Place]) {
        // Admitting others never frees a place, so nobody is looked at again.
        let mut waiting: Vec<_> = places.iter().flat_map(|place| self.waiting_for(place)).collect();
        waiting.sort_unstable();
        waiting.dedup();
        let mut passed = Vec::new();
        for (_, ticket) in waiting {
            let Some(waiter) = self.waiting.get(&ticket) else {
                continue;
            };
            match self.find_busy(waiter.comer(ticket), &waiter.places, waiter.busy) {
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

    /// The waiters of a place. False, which sorts first, is with those whose turn it is at a row: the last one was not the
    /// marketplace's, or not a seller's.
    fn waiting_for(&self, place: &Place) -> impl Iterator<Item = (bool, Ticket)> {
        let is_row = matches!(place, Place::Row(_));
        self.queues.get(place).into_iter().flat_map(move |queue| {
            let was_marketplaces = queue.was_marketplaces;
            let marketplaces = queue.marketplaces.in_order(!is_row || was_marketplaces);
            marketplaces.chain(queue.sellers.in_order(!is_row || !was_marketplaces))
        })
    }

    fn is_full(&self, place: &Place, for_marketplace: bool) -> bool {
        let most = match place {
            Place::Row(_) => ROW_QUEUE,
            Place::PartOfShare(..) => SHARE_QUEUE / 2,
            _ => SHARE_QUEUE,
        };
        let is_full = |queue: &Queue| queue.waiting(for_marketplace).tickets.len() >= most;
        self.queues.get(place).is_some_and(is_full)
    }

    /// Takes places that are free, and returns the waiters that this passes.
    fn occupy(&mut self, ticket: Ticket, places: &[Place], for_marketplace: bool) -> BTreeSet<Ticket> {
        let (mut passed, now) = (BTreeSet::new(), Instant::now());
        for place in places {
            let queue = self.queues.entry(place.clone()).or_default();
            queue.taken += 1;
            if matches!(place, Place::Row(_)) {
                queue.taken_at = Some(now);
                let is_passed = |longest: &Ticket| *longest < ticket;
                passed.extend(queue.sellers.tickets.first().copied().filter(is_passed));
                // A seller that takes its own turn passes no order.
                let is_due = |longest: &Ticket| {
                    if for_marketplace {
                        is_passed(longest)
                    } else {
                        !queue.was_marketplaces
                    }
                };
                passed.extend(queue.marketplaces.tickets.first().copied().filter(is_due));
                queue.was_marketplaces = for_marketplace;
            }
        }
        passed
    }

    /// Admits a waiter, and returns the waiters that it passes.
    fn admit(&mut self, ticket: Ticket) -> BTreeSet<Ticket> {
        let Some(waiter) = self.leave(ticket) else {
            return BTreeSet::new();
        };
        let passed = self.occupy(ticket, &waiter.places, waiter.for_marketplace);
        // Fails if the waiter is just being dropped: `Admission::drop` then gives the places up.
        let _ = waiter.begin.send(());
        passed
    }

    /// Takes a waiter out of all queues.
    fn leave(&mut self, ticket: Ticket) -> Option<Waiter> {
        let waiter = self.waiting.remove(&ticket)?;
        for place in waiter.places.iter() {
            if let Some(queue) = self.queues.get_mut(place) {
                queue.of(waiter.for_marketplace).tickets.remove(&ticket);
            }
        }
        self.keep_no_more(ticket, &waiter.places);
        Some(waiter)
    }

    fn keep_no_more(&mut self, ticket: Ticket, places: &[Place]) {
        for place in places {
            if let Some(queue) = self.queues.get_mut(place) {
                for waiting in [&mut queue.sellers, &mut queue.marketplaces] {
                    waiting.kept_for.take_if(|kept_for| *kept_for == ticket);
                }
            }
        }
    }

    fn pass(&mut self, tickets: impl IntoIterator<Item = Ticket>) {
        for ticket in tickets {
            let Some(waiter) = self.waiting.get_mut(&ticket) else {
                continue;
            };
            waiter.passed += 1;
            let (places, for_marketplace) = (Arc::clone(&waiter.places), waiter.for_marketplace);
            let most = if for_marketplace {
                MARKETPLACE_PASSES
            } else {
                PASSES
            };
            if waiter.passed < most {
                continue;
            }
            let is_row = |place: &&Place| matches!(place, Place::Row(_));
            let (rows, shares): (Vec<_>, Vec<_>) = places.iter().partition(is_row);
            let is_full = |share: &Place| {
                self.queues
                    .get(share)
                    .is_some_and(|queue| !self.has_room(share, queue))
            };
            let is_of_seller = |share: &&&Place| matches!(share, Place::Share(_));
            if shares.iter().filter(is_of_seller).count() > 1
                || shares.into_iter().any(is_full)
                || rows.iter().any(|row| self.is_held_for(KEPT, row))
            {
                continue;
            }
            if let Some(waiter) = self.waiting.get_mut(&ticket) {
                waiter.kept_since.get_or_insert_with(Instant::now);
            }
            for place in rows {
                if let Some(queue) = self.queues.get_mut(place) {
                    let kept_for = &mut queue.of(for_marketplace).kept_for;
                    *kept_for = Some(kept_for.map_or(ticket, |longest| longest.min(ticket)));
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
        if waited.is_none_or(|waiter| waiter.kept_since.is_some()) {
            state.admit_waiting(&self.places);
        }
        for place in self.places.iter() {
            let is_unused = |queue: &Queue| {
                queue.taken == 0 && queue.sellers.tickets.is_empty() && queue.marketplaces.tickets.is_empty()
            };
            if state.queues.get(place).is_some_and(is_unused) {
                state.queues.remove(place);
            }
        }
    }
}

#[cfg(test)]
mod tests;
