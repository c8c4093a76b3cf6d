//! Locks on rows, as PostgreSQL has them: four strengths, held to the end of the transaction.

use std::{
    collections::{BTreeMap, BTreeSet},
    task::Waker,
};

use kernel::{OfferId, SellerId};
use oauth::{ClientId, FamilyId};
use orders::OrderId;
use uuid::Uuid;
use webhooks::LaneKey;

use super::TxId;

/// A row that can be locked.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Row {
    Offer(SellerId, OfferId),
    /// An order's number, which is unique.
    Number(String),
    Part(OrderId, SellerId),
    Lane(LaneKey),
    /// The places that an application has for subscriptions at a seller.
    Places(SellerId, ClientId),
    Claim(Uuid, String),
    Application(ClientId),
    /// An application's name, which is unique.
    Name(String),
    Seller(SellerId),
    /// An account's address, which is unique.
    Email(String),
    Connection(SellerId, ClientId),
    Family(FamilyId),
    AccessToken(FamilyId, [u8; 32]),
    /// A limiter's count of a subject.
    Window(i16, Uuid),
}

/// How strong a lock is (PostgreSQL: Row-Level Locks).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Strength {
    KeyShare,
    Share,
    NoKeyUpdate,
    Update,
}

impl Strength {
    const fn conflicts_with(self, other: Self) -> bool {
        use Strength::{KeyShare, NoKeyUpdate, Share, Update};
        match (self, other) {
            (Update, _) | (_, Update) | (NoKeyUpdate, NoKeyUpdate | Share) | (Share, NoKeyUpdate) => true,
            (KeyShare, _) | (_, KeyShare) | (Share, Share) => false,
        }
    }
}

/// Who holds what, and who waits for it.
#[derive(Debug, Default)]
pub(crate) struct Locks {
    held: BTreeMap<Row, Vec<(TxId, Strength)>>,
    wanted: BTreeMap<TxId, (Row, Strength)>,
    waiting: Vec<Waker>,
}

impl Locks {
    /// Takes a lock where nobody is in the way.
    pub(crate) fn try_take(&mut self, tx: TxId, row: &Row, strength: Strength) -> bool {
        if self.in_the_way(tx, row, strength).next().is_some() {
            return false;
        }
        let holders = self.held.entry(row.clone()).or_default();
        if !holders.contains(&(tx, strength)) {
            holders.push((tx, strength));
        }
        self.wanted.remove(&tx);
        true
    }

    fn in_the_way<'a>(
        &'a self,
        tx: TxId,
        row: &Row,
        strength: Strength,
    ) -> impl Iterator<Item = TxId> + use<'a> {
        let holders = self.held.get(row).into_iter().flatten();
        let others = holders.filter(move |(other, held)| *other != tx && strength.conflicts_with(*held));
        others.map(|(other, _)| *other)
    }

    /// Waits on; false where it would be waiting for itself.
    pub(crate) fn wait(&mut self, tx: TxId, row: &Row, strength: Strength, waker: Waker) -> bool {
        self.wanted.insert(tx, (row.clone(), strength));
        if self.is_waited_for(tx) {
            self.wanted.remove(&tx);
            return false;
        }
        self.waiting.push(waker);
        true
    }

    /// Whether anybody for whom `tx` waits, however indirectly, waits for `tx`.
    fn is_waited_for(&self, tx: TxId) -> bool {
        let (mut seen, mut next) = (BTreeSet::new(), vec![tx]);
        while let Some(waiter) = next.pop() {
            let Some((row, strength)) = self.wanted.get(&waiter) else {
                continue;
            };
            for holder in self.in_the_way(waiter, row, *strength) {
                if holder == tx {
                    return true;
                }
                if seen.insert(holder) {
                    next.push(holder);
                }
            }
        }
        false
    }

    /// Waits no more, though it has not got it.
    pub(crate) fn give_up(&mut self, tx: TxId) {
        self.wanted.remove(&tx);
    }

    /// Gives back everything that a transaction holds, and returns those who are to look again.
    pub(crate) fn end(&mut self, tx: TxId) -> Vec<Waker> {
        self.wanted.remove(&tx);
        self.held.retain(|_, holders| {
            holders.retain(|(holder, _)| *holder != tx);
            !holders.is_empty()
        });
        std::mem::take(&mut self.waiting)
    }
}
