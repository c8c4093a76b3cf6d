//! Reads that may be slow, apart from all others: connections of their own, and a statement timeout.
//!
//! Any page is slow where rows have many dead versions, which stay while a snapshot needs them: an offer may get six hundred a
//! minute. So a seller whose reads took long has them here for a while.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use diesel_async::{AsyncPgConnection, methods::LoadQuery};
use kernel::{Reader, SellerId, ShareTaken, StoreError};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep, timeout};
use tracing::Instrument as _;
use usecases::LockSet;

use crate::{
    ANSWER_TIMEOUT,
    connection::error::with_timeout,
    statement::{Prepared, Returns},
    turns::{Admission, Turns},
    unit_of_work::{PLAN_BY_VALUES, PgUnitOfWork, changing_any},
};

/// Connections of a process for slow reads.
pub(crate) const CONNECTIONS: usize = 4;

/// How long a read waits for those of its seller and application before it. The rest of its time is for itself.
const TURN_TIMEOUT: Duration = Duration::from_millis(1_250);

/// Shorter than a read waits.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// A read that takes longer than this delays those behind it.
const LONG: Duration = Duration::from_millis(100);

/// How long the sellers of a batch with a long statement are remembered, and a seller with a long one alone.
const SUSPECTED_FOR: Duration = Duration::from_secs(10);
const REMEMBERED_FOR: Duration = Duration::from_mins(1);

/// The most sellers that are remembered: if all reads are slow, four connections cannot serve everybody.
const MOST_REMEMBERED: usize = 64;

/// Sellers with reads that took long, and until when they are remembered.
#[derive(Clone, Default)]
pub(crate) struct SlowSellers(Arc<Mutex<BTreeMap<SellerId, Instant>>>);

impl SlowSellers {
    pub(crate) fn has(&self, seller: SellerId) -> bool {
        let until = self.0.lock().get(&seller).copied();
        until.is_some_and(|until| until > Instant::now())
    }

    /// Runs a statement for these sellers. They are remembered as soon as it takes long, not when it ends.
    pub(crate) async fn watch<F: Future>(
        &self,
        sellers: impl Iterator<Item = SellerId>,
        statement: F,
    ) -> F::Output {
        let mut statement = pin!(statement);
        if let Ok(answer) = timeout(LONG, &mut statement).await {
            return answer;
        }
        for seller in sellers {
            self.remember(seller, SUSPECTED_FOR);
        }
        statement.await
    }

    fn remember(&self, seller: SellerId, time: Duration) {
        let (now, mut slow) = (Instant::now(), self.0.lock());
        slow.retain(|_, until| *until > now);
        if slow.len() < MOST_REMEMBERED || slow.contains_key(&seller) {
            slow.insert(seller, now + time);
        }
    }
}

/// Runs slow reads.
pub(crate) struct SlowReads {
    /// They MUST have turns of their own, with a share of one for a seller and half of the connections for an application, so that
    /// none takes the connections from the others.
    pub(crate) units: PgUnitOfWork,
    /// Turns of long reads, one at a time. These have other connections; their turns are here because all threads
    /// share them.
    pub(crate) long: Arc<Turns>,
    pub(crate) sellers: SlowSellers,
}

/// A reader's turn at an answer of up to fifty megabytes. Its end keeps the reader's next one waiting for as long as it
/// took, so that others have their turn; a second at most, so that it is not refused.
pub(crate) struct LongTurn {
    own: Option<Admission>,
    _of_all: Admission,
    began: Instant,
}

impl LongTurn {
    /// Only one caller of each seller, and of each application, waits for the one place of all, so that the callers of one do not
    /// queue before another's.
    pub(crate) async fn take(long: &Arc<Turns>, reader: Reader) -> Result<Self, StoreError> {
        let own = long.take(&LockSet::of_reader(reader), TURN_TIMEOUT).await;
        // Only its own reads were before it.
        let own = Some(own.map_err(|_| StoreError::Unavailable(ShareTaken.into()))?);
        // By a share that is the same for all sellers.
        let of_all = long.take(&LockSet::of_strangers(), ANSWER_TIMEOUT).await?;
        Ok(Self {
            own,
            _of_all: of_all,
            began: Instant::now(),
        })
    }
}

impl Drop for LongTurn {
    fn drop(&mut self) {
        let (own, pause) = (self.own.take(), self.began.elapsed().min(LONGEST_PAUSE));
        // Where there is none, the program ends.
        if let Ok(runtime) = Handle::try_current() {
            drop(runtime.spawn(async move {
                sleep(pause).await;
                drop(own);
            }));
        }
    }
}

impl SlowReads {
    /// All rows of a statement, planned for its values. It has a transaction, so that PostgreSQL ends it at
    /// the statement timeout even if its caller has gone; until then the reader's turn lasts.
    pub(crate) async fn rows<S>(&self, reader: Reader, statement: S) -> Result<Vec<S::Row>, StoreError>
    where
        S: Returns + Send + 'static,
        Prepared<S>: for<'t> LoadQuery<'t, &'t AsyncPgConnection, S::Row>,
    {
        with_timeout(ANSWER_TIMEOUT, async {
            let own = LockSet::of_reader(reader);
            let turn = self.units.connections.turns.take(&own, TURN_TIMEOUT).await;
            // Only reads of its own share were before it: its own, its application's, or the panel's.
            let turn = turn.map_err(|_| StoreError::Unavailable(ShareTaken.into()))?;
            let tx = self
                .units
                .open_transaction(&LockSet::default(), ANSWER_TIMEOUT)
                .await?;
            let sellers = self.sellers.clone();
            let reading = async move {
                tx.write_later(changing_any(PLAN_BY_VALUES.bare()));
                let began = Instant::now();
                let rows = tx.rows(statement).await;
                if began.elapsed() > LONG && sellers.has(reader.seller) {
                    sellers.remember(reader.seller, REMEMBERED_FOR);
                }
                drop((tx, turn));
                rows
            };
            let rows = tokio::spawn(reading.in_current_span()).await;
            rows.unwrap_or_else(|ended| Err(StoreError::Unavailable(ended.into())))
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use kernel::SellerId;
    use uuid::Uuid;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn sellers_are_remembered_while_their_long_statement_is_under_way() {
        let slow = SlowSellers::default();
        let [long, short] = [1, 2].map(|n| SellerId::from(Uuid::from_u128(n)));
        let mut statement = pin!(slow.watch([long].into_iter(), pending::<()>()));
        timeout(2 * LONG, &mut statement).await.unwrap_err();
        slow.watch([short].into_iter(), sleep(LONG / 2)).await;
        assert_eq!([long, short].map(|seller| slow.has(seller)), [true, false]);
        sleep(SUSPECTED_FOR).await;
        assert!(!slow.has(long));
    }

    #[tokio::test(start_paused = true)]
    async fn a_sellers_next_long_read_waits_for_as_long_as_the_last_one_took() {
        let long = Turns::new(1);
        let [mine, other] = [1, 2].map(|n| Reader::from(SellerId::from(Uuid::from_u128(n))));
        let turn = LongTurn::take(&long, mine).await.unwrap();
        let second = Duration::from_secs(1);
        sleep(second).await;
        drop(turn);
        let began = Instant::now();
        drop(timeout(second / 2, LongTurn::take(&long, other)).await.unwrap());
        drop(LongTurn::take(&long, mine).await.unwrap());
        assert_eq!(began.elapsed().as_secs(), 1);
        // However long one has taken, the next one that comes behind it is not refused.
        let turn = LongTurn::take(&long, mine).await.unwrap();
        sleep(2 * second).await;
        drop(turn);
        let _turn = LongTurn::take(&long, mine).await.unwrap();
        let refused = LongTurn::take(&long, mine).await.err().unwrap();
        assert!(matches!(refused, StoreError::Unavailable(cause) if cause.is::<ShareTaken>()));
    }
}
