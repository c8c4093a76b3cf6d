//! Recording how the attempts of one lane ended, and giving it back.

use std::collections::BTreeMap;

use diesel::{
    QueryResult,
    sql_types::{BigInt, Bool, Integer, Nullable, SmallInt, Text, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use futures_util::{future::try_join_all, join};
use kernel::StoreError;
use uuid::Uuid;
use webhooks::{Conclusion, Hold, LaneKey, Release};

use crate::statement::statement;
use crate::webhooks::settle::{End, undone_by_failure};

/// Locks a lane whose lease still holds, and tells whether nobody is queueing deliveries for it; nothing where the lease is lost.
/// Whoever gives the lane back has it locked against those, too.
struct Lock {
    seller: Uuid,
    lane: Uuid,
    fence: Uuid,
    released: bool,
}

statement!(Lock => Bool:
    "with held as materialized (select s.id from subscriptions s where s.seller_id = ", seller: SqlUuid, " and s.id = ", lane: SqlUuid,
    " and s.leased and s.fence = ", fence: SqlUuid, " for no key update), \
     undisturbed as materialized (select s.id from held h join subscriptions s on s.id = h.id where s.seller_id = ", seller: SqlUuid,
    " and s.id = ", lane: SqlUuid, " and ", released: Bool, " for update of s skip locked) \
     select exists (select from undisturbed) from held");

/// Records how one attempt ended. Each is a statement, so that the row's whole key is known: of several in one the server reads
/// the lane's whole history, for it expects next to nothing of a lane.
struct Record {
    seller: Uuid,
    lane: Uuid,
    delivery: Uuid,
    end: End,
}

statement!(Record => ():
    "update deliveries d set attempt = d.attempt + 1, lost = least(d.lost, ", end.forgiven: SmallInt,
    "), due_at = case when d.due_at is not null then clock.at + ", end.delay: Nullable<BigInt>, " * interval '1 microsecond' end, delivered_at = case when ", end.delivered: Bool,
    " then clock.at end, duration_ms = ", end.duration: Integer, ", response_status = ", end.status: Nullable<SmallInt>,
    ", failure = ", end.failure: Nullable<Text>, " from (select api_now() as at offset 0) clock where d.seller_id = ", seller: SqlUuid,
    " and d.subscription_id = ", lane: SqlUuid, " and d.id = ", delivery: SqlUuid, " and d.attempt = ", end.attempt: SmallInt,
    " and d.delivered_at is null");

/// Gives the lane back, as the statement for many does with each.
struct GiveBack {
    seller: Uuid,
    lane: Uuid,
    fence: Uuid,
    failing: Option<bool>,
    /// In microseconds.
    rest: i64,
    undisturbed: bool,
}

statement!(GiveBack => ():
    "with clock as materialized (select api_now() as at), \
     next as materialized (select min(greatest(w.due_at, clock.at + ", rest: BigInt, " * interval '1 microsecond')) as due_at from clock, (\
       (select d.due_at from deliveries d where d.seller_id = ", seller: SqlUuid, " and d.subscription_id = ", lane: SqlUuid,
    " and d.due_at is not null and d.attempt = 0 order by d.due_at limit 1) union all \
       (select d.due_at from deliveries d where d.seller_id = ", seller: SqlUuid, " and d.subscription_id = ", lane: SqlUuid,
    " and d.due_at is not null and d.attempt > 0 order by d.due_at limit 1)) w) \
     update subscriptions s set leased = false, fence = null, in_hand = '{}', failing = coalesce(", failing: Nullable<Bool>,
    ", s.failing), wake_at = case when ", undisturbed: Bool, " then next.due_at \
         else least(next.due_at, clock.at + interval '20 milliseconds') end \
     from clock, next where s.seller_id = ", seller: SqlUuid, " and s.id = ", lane: SqlUuid,
    " and s.leased and s.fence = ", fence: SqlUuid, "");

/// What is recorded of one lane.
pub(super) struct Settlement {
    hold: Hold,
    ends: Vec<Record>,
    release: Option<Release>,
}

impl Settlement {
    pub(super) fn by_lane(conclusions: &[Conclusion], released: &[Release]) -> Result<Vec<Self>, StoreError> {
        let mut lanes = BTreeMap::<Hold, (Vec<Record>, Option<Release>)>::new();
        for conclusion in conclusions {
            let LaneKey { seller, subscription } = conclusion.hold.lane;
            lanes.entry(conclusion.hold).or_default().0.push(Record {
                seller: seller.uuid(),
                lane: subscription.uuid(),
                delivery: conclusion.delivery.uuid(),
                end: End::of(conclusion)?,
            });
        }
        for release in released {
            lanes.entry(release.hold).or_default().1 = Some(*release);
        }
        let settlements = lanes
            .into_iter()
            .map(|(hold, (ends, release))| Self { hold, ends, release });
        Ok(settlements.collect())
    }

    /// Sends it as a transaction.
    pub(super) async fn send(self, connection: &AsyncPgConnection) -> QueryResult<()> {
        let sent = self.send_in_transaction(connection).await;
        undone_by_failure(connection, sent).await
    }

    async fn send_in_transaction(self, connection: &AsyncPgConnection) -> QueryResult<()> {
        let Self { hold, ends, release } = self;
        let (seller, lane, fence) = (hold.lane.seller.uuid(), hold.lane.subscription.uuid(), hold.fence);
        let lock = Lock {
            seller,
            lane,
            fence,
            released: release.is_some(),
        };
        let (mut beginning, mut locking, mut ending) = (connection, connection, connection);
        let (begun, locked) = join!(
            beginning.batch_execute("begin"),
            lock.get_results::<bool>(&mut locking),
        );
        begun?;
        if let Some(undisturbed) = locked?.pop() {
            let recorded = ends
                .into_iter()
                .map(async |end| end.execute(&mut { connection }).await);
            try_join_all(recorded).await?;
            if let Some(Release { failing, rest, .. }) = release {
                let give_back = GiveBack {
                    seller,
                    lane,
                    fence,
                    failing,
                    rest: rest.num_microseconds().unwrap_or(i64::MAX),
                    undisturbed,
                };
                give_back.execute(&mut { connection }).await?;
            }
        }
        ending.batch_execute("commit").await
    }
}

/// The texts of the statements.
#[cfg(test)]
pub(super) fn texts() -> [String; 3] {
    use diesel::{debug_query, pg::Pg};

    let (seller, lane, fence) = (Uuid::nil(), Uuid::nil(), Uuid::nil());
    let lock = Lock {
        seller,
        lane,
        fence,
        released: true,
    };
    let record = Record {
        seller,
        lane,
        delivery: Uuid::nil(),
        end: End {
            attempt: 0,
            delivered: true,
            delay: None,
            duration: 1,
            status: Some(200),
            failure: None,
            forgiven: 0,
        },
    };
    let give_back = GiveBack {
        seller,
        lane,
        fence,
        failing: None,
        rest: 0,
        undisturbed: true,
    };
    [
        debug_query::<Pg, _>(&lock).to_string(),
        debug_query::<Pg, _>(&record).to_string(),
        debug_query::<Pg, _>(&give_back).to_string(),
    ]
}
