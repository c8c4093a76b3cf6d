//! Recording how attempts ended, and giving lanes back.

use std::collections::BTreeSet;

use diesel::{
    QueryResult,
    sql_types::{Array, BigInt, Bool, Integer, Nullable, SmallInt, Text, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use futures_util::join;
use kernel::StoreError;
use uuid::Uuid;
use webhooks::{Conclusion, Fate, LOSSES_FORGIVEN, LaneKey, Outcome, Release};

use crate::statement::statement;

/// Records the ends of attempts made under leases that still hold, and tells which of the lanes that are to be given back no
/// transaction is queueing deliveries for. Those rows are locked against that until the transaction
///
/// What has ended is joined with its hold before its row is looked for: the row's whole key then comes from one side. The
/// server takes sellers and subscriptions for independent, expects one delivery of a lane, and would as soon read all of them.
///
/// An attempt that was under way when its delivery was stopped is recorded like any other, and nothing follows from it.
///
/// All lanes are locked in one order first. The stronger lock is not waited for: a buyer's order that hangs between its last
/// statement and its end holds up nobody else's deliveries.
#[derive(Default)]
struct Record {
    holds: Holds,
    delivery_sellers: Vec<Uuid>,
    delivery_lanes: Vec<Uuid>,
    deliveries: Vec<Uuid>,
    attempts: Vec<i16>,
    delivered: Vec<bool>,
    /// Microseconds until the next attempt.
    delays: Vec<Option<i64>>,
    durations: Vec<i32>,
    statuses: Vec<Option<i16>>,
    failures: Vec<Option<String>>,
    forgiven: i16,
    release_sellers: Vec<Uuid>,
    release_lanes: Vec<Uuid>,
}

/// Lanes and fences, each once.
#[derive(Default)]
struct Holds {
    sellers: Vec<Uuid>,
    lanes: Vec<Uuid>,
    fences: Vec<Uuid>,
}

statement!(Record => (SqlUuid, SqlUuid):
    "with clock as materialized (select api_now() as at), \
     held as materialized (select s.seller_id, s.id from unnest(", holds.sellers: Array<SqlUuid>,
    ", ", holds.lanes: Array<SqlUuid>, ", ", holds.fences: Array<SqlUuid>,
    ") k (seller_id, id, fence) join subscriptions s on s.seller_id = k.seller_id and s.id = k.id \
       where s.leased and s.fence = k.fence order by s.seller_id, s.id for no key update of s), \
     ended as materialized (select c.* from unnest(", delivery_sellers: Array<SqlUuid>, ", ", delivery_lanes: Array<SqlUuid>,
    ", ", deliveries: Array<SqlUuid>, ", ", attempts: Array<SmallInt>, ", ", delivered: Array<Bool>,
    ", ", delays: Array<Nullable<BigInt>>, ", ", durations: Array<Integer>,
    ", ", statuses: Array<Nullable<SmallInt>>, ", ", failures: Array<Nullable<Text>>,
    ") c (seller_id, lane, id, attempt, delivered, delay, duration, status, failure) \
         join held h on h.seller_id = c.seller_id and h.id = c.lane), \
     recorded as (update deliveries d set attempt = d.attempt + 1, lost = least(d.lost, ", forgiven: SmallInt,
    "), due_at = case when d.due_at is not null then clock.at + c.delay * interval '1 microsecond' end, delivered_at = case when c.delivered then clock.at end, \
         duration_ms = c.duration, response_status = c.status, failure = c.failure \
       from clock, ended c \
       where d.seller_id = c.seller_id and d.subscription_id = c.lane and d.id = c.id and d.attempt = c.attempt \
         and d.delivered_at is null) \
     select s.seller_id, s.id from unnest(", release_sellers: Array<SqlUuid>, ", ", release_lanes: Array<SqlUuid>,
    ") r (seller_id, id) join held h on h.seller_id = r.seller_id and h.id = r.id \
       join subscriptions s on s.seller_id = h.seller_id and s.id = h.id for update of s skip locked");

impl Record {
    fn new(conclusions: &[Conclusion], released: &[Release]) -> Result<Self, StoreError> {
        let mut record = Self {
            forgiven: LOSSES_FORGIVEN.into(),
            ..Self::default()
        };
        let holds = conclusions.iter().map(|end| end.hold);
        let holds = holds.chain(released.iter().map(|release| release.hold));
        let each_once: BTreeSet<_> = holds.map(|hold| (hold.lane, hold.fence)).collect();
        for (lane, fence) in each_once {
            record.holds.sellers.push(lane.seller.uuid());
            record.holds.lanes.push(lane.subscription.uuid());
            record.holds.fences.push(fence);
        }
        for conclusion in conclusions {
            record.add(conclusion)?;
        }
        for release in released {
            record.release_sellers.push(release.hold.lane.seller.uuid());
            record.release_lanes.push(release.hold.lane.subscription.uuid());
        }
        Ok(record)
    }

    fn add(&mut self, end: &Conclusion) -> Result<(), StoreError> {
        let LaneKey { seller, subscription } = end.hold.lane;
        self.delivery_sellers.push(seller.uuid());
        self.delivery_lanes.push(subscription.uuid());
        self.deliveries.push(end.delivery.uuid());
        self.attempts.push(end.attempt.into());
        self.delivered.push(end.fate == Fate::Delivered);
        self.delays.push(match end.fate {
            Fate::Retry(delay) => Some(delay.num_microseconds().unwrap_or(i64::MAX)),
            Fate::Delivered | Fate::Exhausted => None,
        });
        self.durations.push(end.duration_ms);
        let (status, failure) = match &end.outcome {
            Outcome::Answered(status) => (
                Some(i16::try_from(*status).map_err(StoreError::unexpected)?),
                None,
            ),
            Outcome::Failed(failure) => (None, Some(failure.to_text())),
        };
        self.statuses.push(status);
        self.failures.push(failure);
        Ok(())
    }
}

/// Gives lanes back: asleep where nothing waits, due when the next delivery is, and where one is due now at the back of the
/// queue, none before its rest is over. One that deliveries are being queued for stays awake, and is looked at again after a moment: whoever queues them
/// leaves the waking of a leased lane to its owner.
///
/// It has to see what was committed before the rows were locked, and so is a statement of its own.
#[derive(Default)]
struct GiveBack {
    sellers: Vec<Uuid>,
    lanes: Vec<Uuid>,
    fences: Vec<Uuid>,
    failing: Vec<Option<bool>>,
    /// In microseconds.
    rests: Vec<i64>,
    undisturbed: Vec<bool>,
}

statement!(GiveBack => ():
    "with clock as materialized (select api_now() as at) \
     update subscriptions s set leased = false, fence = null, in_hand = '{}', failing = coalesce(n.failing, s.failing), \
       wake_at = case when n.undisturbed then n.due_at \
         else least(n.due_at, clock.at + interval '20 milliseconds') end \
     from clock, (select r.*, (select min(greatest(w.due_at, c.at + r.rest * interval '1 microsecond')) from (\
           (select due_at from deliveries d where d.seller_id = r.seller_id and d.subscription_id = r.id \
              and d.due_at is not null and d.attempt = 0 order by due_at limit 1) union all \
           (select due_at from deliveries d where d.seller_id = r.seller_id and d.subscription_id = r.id \
              and d.due_at is not null and d.attempt > 0 order by due_at limit 1)) w) as due_at \
         from clock c, unnest(", sellers: Array<SqlUuid>, ", ", lanes: Array<SqlUuid>, ", ", fences: Array<SqlUuid>,
    ", ", failing: Array<Nullable<Bool>>, ", ", rests: Array<BigInt>, ", ", undisturbed: Array<Bool>,
    ") r (seller_id, id, fence, failing, rest, undisturbed)) n \
     where s.seller_id = n.seller_id and s.id = n.id and s.leased and s.fence = n.fence");

impl GiveBack {
    fn new(released: &[Release], undisturbed: &[(Uuid, Uuid)]) -> Self {
        let mut give_back = Self::default();
        for Release { hold, failing, rest } in released {
            let lane = (hold.lane.seller.uuid(), hold.lane.subscription.uuid());
            give_back.sellers.push(lane.0);
            give_back.lanes.push(lane.1);
            give_back.fences.push(hold.fence);
            give_back.failing.push(*failing);
            give_back.rests.push(rest.num_microseconds().unwrap_or(i64::MAX));
            give_back.undisturbed.push(undisturbed.contains(&lane));
        }
        give_back
    }
}

/// What is recorded in one go.
pub(super) struct Settlement {
    record: Record,
    released: Vec<Release>,
}

impl Settlement {
    pub(super) fn new(conclusions: &[Conclusion], released: &[Release]) -> Result<Self, StoreError> {
        Ok(Self {
            record: Record::new(conclusions, released)?,
            released: released.to_vec(),
        })
    }

    /// Sends it: one statement that is its own transaction where no lane is given back, else a transaction.
    pub(super) async fn send(self, mut connection: &AsyncPgConnection) -> QueryResult<()> {
        if self.released.is_empty() {
            self.record.execute(&mut connection).await?;
            return Ok(());
        }
        let sent = self.send_in_transaction(connection).await;
        undone_by_failure(connection, sent).await
    }

    async fn send_in_transaction(self, connection: &AsyncPgConnection) -> QueryResult<()> {
        let (mut beginning, mut recording) = (connection, connection);
        let (begun, undisturbed) = join!(
            beginning.batch_execute("begin"),
            self.record.get_results::<(Uuid, Uuid)>(&mut recording),
        );
        begun?;
        let give_back = GiveBack::new(&self.released, &undisturbed?);
        let mut giving = connection;
        give_back.execute(&mut giving).await?;
        giving.batch_execute("commit").await
    }
}

/// Ends the transaction of which a statement has failed.
pub(super) async fn undone_by_failure(
    mut connection: &AsyncPgConnection,
    sent: QueryResult<()>,
) -> QueryResult<()> {
    if sent.is_err() {
        connection.batch_execute("rollback").await?;
    }
    sent
}
