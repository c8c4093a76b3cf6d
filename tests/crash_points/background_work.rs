//! Background work: deliveries, parcels and mails. A worker with a fault is followed by a worker without one.
//!
//! This module takes longest and mostly waits. Names put it first in the run, and `changes` beside it, which
//! computes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use blackbox::{CarrierStub, Integration, Receiver, Reply, StubAnswer, World, mails_to, soon_again, until};
use chrono::TimeDelta;
use serde_json::json;
use testkit::{Fault, Statement, StatementProxy, TestWorker};
use tokio::time::timeout;
use uuid::Uuid;

use crate::changes::{Trade, asks, pays};
use crate::faulty_server::through;
use crate::footprint::{Footprint, difference};
use crate::rig::{Rig, Verdict, at_each, eventually_or};

/// The faults of a worker. Nothing waits for its answers, so the other faults have the same effect as one of
/// these.
const FAULTS: [Fault; 4] = [
    Fault::FailsBefore,
    Fault::AnswerLost,
    Fault::ProcessDies,
    Fault::Waits,
];
/// The statements that wait for a transaction in the middle of which its process is paused.
const HELD_UP: &str = "
    select count(*) from pg_stat_activity as w
    where w.datname = current_database() and w.wait_event_type = 'Lock' and exists (
        select from pg_stat_activity as b where b.pid = any(pg_blocking_pids(w.pid)) and b.state = 'idle in transaction')";
/// Workers poll: the statement that finds the work is among the first of its kind.
const LOOKS: usize = 3;
/// Time for a worker to continue by itself after a failure.
const CONTINUES: Duration = Duration::from_millis(400);
/// Advance the clock if the work has not ended after this time, at most this often.
const POSTPONED: Duration = Duration::from_secs(6);
const TRIES: usize = 8;
/// Time for a worker to start and send a statement for the first time.
const STARTS: Duration = Duration::from_secs(20);
/// Time for a worker to send a statement again.
const REACHED: Duration = Duration::from_secs(2);
/// Maximum time for the other worker while a statement's answer waits.
const OVERTAKING: Duration = Duration::from_secs(3);
/// Time for what was sent to be carried out; it takes moments, or a lock's two seconds.
const SETTLES: Duration = Duration::from_secs(20);
/// Time for the first worker to act after its statement's answer.
const RESUMED: Duration = Duration::from_millis(1_500);
/// Longer than any lease of background work.
const WORK_LEASE: TimeDelta = TimeDelta::minutes(26);

/// Due work, and how to tell that it is done.
trait Work {
    /// Each of the work's statements contains one of these.
    const STATEMENTS: &'static [&'static str];
    /// Counts the work that is not done.
    const OPEN: &'static str;
    /// Lists the work that a worker has leased.
    const LEASED: &'static str = "select '' where false";

    /// Makes work due.
    async fn prepare(&self, world: &World);

    /// Checks what the footprint does not cover.
    async fn judge(&self, rig: &Rig) -> Verdict;
}

struct Workers {
    rig: Rig,
    /// The worker without faults; paused while another one works.
    other: TestWorker,
    other_proxy: StatementProxy,
    /// Whether the other worker has leased work, or waited for it, while a statement's answer waited.
    has_overtaken: AtomicBool,
}

impl Workers {
    fn new(rig: Rig) -> Self {
        let other_proxy = StatementProxy::to(&rig.world.database);
        Self {
            other: worker(&rig, &other_proxy),
            other_proxy,
            rig,
            has_overtaken: AtomicBool::new(false),
        }
    }

    fn faulty_worker(&self, proxy: &StatementProxy) -> TestWorker {
        let worker = worker(&self.rig, proxy);
        proxy.set_process(worker.id());
        worker
    }

    /// Pauses the other worker. What it had sent is carried out then, unless it waits for the paused one's lock.
    async fn pause_other(&self) {
        self.other.pause().await;
        self.other_proxy.block();
        eventually_or(SETTLES, async || {
            self.other_proxy.under_way() == 0 || self.rig.count(HELD_UP).await > 0
        })
        .await;
    }

    fn resume_other(&self) {
        self.other_proxy.unblock();
        self.other.resume();
    }

    /// Checks each fault at each of the work's statements.
    async fn check<W: Work>(&self, work: &W) -> Verdict {
        self.pause_other().await;
        let (once, _) = self.run_undisturbed(work).await?;
        let (again, expected) = self.run_undisturbed(work).await?;
        let is_own = |one: &Statement| {
            let is_work = W::STATEMENTS.iter().any(|piece| one.sql.contains(piece));
            is_work && one.nth < LOOKS && again.contains(one)
        };
        let statements: Vec<_> = once.into_iter().filter(is_own).collect();
        assert!(!statements.is_empty(), "the work sends no statement");
        at_each(&statements, &FAULTS, async |statement, fault| {
            self.play(work, statement, fault, &expected).await
        })
        .await?;
        let has_overtaken = self.has_overtaken.load(Ordering::Relaxed);
        let has_overtaken = has_overtaken.then_some(());
        has_overtaken.ok_or_else(|| "no worker has overtaken another".to_owned())
    }

    async fn run_undisturbed<W: Work>(&self, work: &W) -> Result<(Vec<Statement>, Footprint), String> {
        let proxy = StatementProxy::to(&self.rig.world.database);
        work.prepare(&self.rig.world).await;
        let before = self.rig.footprint().await;
        let worker = self.faulty_worker(&proxy);
        self.done::<W>().await;
        work.judge(&self.rig).await?;
        let expected = difference(&before, &self.rig.footprint().await);
        end(worker, &proxy).await;
        Ok((proxy.recorded(), expected))
    }

    async fn play<W: Work>(
        &self,
        work: &W,
        statement: &Statement,
        fault: Fault,
        expected: &Footprint,
    ) -> Result<bool, String> {
        work.prepare(&self.rig.world).await;
        let before = self.rig.footprint().await;
        let proxy = StatementProxy::to(&self.rig.world.database);
        proxy.arm(statement, fault);
        let worker = self.faulty_worker(&proxy);
        // A fault that came later would kill the only worker that runs.
        // The first of its kind always comes; later ones are polls, which may not.
        let limit = if statement.nth == 0 { STARTS } else { REACHED };
        let reached = timeout(limit, proxy.reached()).await.is_ok() || !proxy.disarm();
        let verdict = self.follow::<W>(fault, &proxy, reached).await;
        end(worker, &proxy).await;
        self.pause_other().await;
        verdict?;
        work.judge(&self.rig).await?;
        self.rig.check_footprint(&before, expected).await?;
        // Polls that find no work need not come again.
        Ok(reached || statement.nth > 0)
    }

    /// Follows the work from the fault until it is done.
    async fn follow<W: Work>(&self, fault: Fault, proxy: &StatementProxy, reached: bool) -> Verdict {
        // After an error the worker continues by itself.
        let continues = matches!(fault, Fault::FailsBefore | Fault::AnswerLost);
        if reached && !(continues && timeout(CONTINUES, self.done::<W>()).await.is_ok()) {
            self.rig.clock.advance(WORK_LEASE).await;
            self.resume_other();
            if fault == Fault::Waits {
                self.overtaken::<W>(proxy).await?;
            }
        }
        self.finish::<W>().await
    }

    /// Waits until the work is done. Advances the database's clock, so that postponed work becomes due.
    async fn finish<W: Work>(&self) -> Verdict {
        for _ in 0..TRIES {
            if timeout(POSTPONED, self.done::<W>()).await.is_ok() {
                return Ok(());
            }
            self.rig.clock.advance(WORK_LEASE).await;
        }
        Err("the work is not done".to_owned())
    }

    /// Resumes a waiting statement after another worker has leased the work. The first worker must leave the
    /// work to it.
    async fn overtaken<W: Work>(&self, proxy: &StatementProxy) -> Verdict {
        // Once its release was carried out, the first one may lease the work again itself.
        let leased_by_other = async || {
            let mut leases = self.rig.list(W::LEASED).await;
            leases.retain(|lease| {
                let fence = lease
                    .split(' ')
                    .next_back()
                    .and_then(|fence| fence.parse::<Uuid>().ok());
                fence.is_some_and(|fence| self.other_proxy.has_sent(fence.as_bytes()))
            });
            leases
        };
        // Another one's transaction may hide the work until its end.
        let overtaken = eventually_or(OVERTAKING, async || {
            !leased_by_other().await.is_empty()
                || self.rig.waits_for_lock().await
                || self.rig.count(W::OPEN).await == 0
        })
        .await;
        self.has_overtaken.fetch_or(overtaken, Ordering::Relaxed);
        self.pause_other().await;
        // What it has sent may still be under way.
        eventually_or(SETTLES, async || self.rig.count(UNDER_WAY).await == 0).await;
        let others = leased_by_other().await;
        let sent = proxy.recorded().len();
        proxy.resume();
        eventually_or(RESUMED, async || {
            proxy.recorded().len() > sent + 2 || leased_by_other().await != others
        })
        .await;
        let after = leased_by_other().await;
        self.resume_other();
        if others.is_empty() || others == after {
            return Ok(());
        }
        Err(format!("the other worker's {others:?} has become {after:?}"))
    }

    async fn done<W: Work>(&self) {
        until(W::OPEN, async || self.rig.count(W::OPEN).await == 0).await;
    }
}

/// Kills a worker. What it had sent is carried out before this returns, or never: a later look-up would lease
/// the next run's work.
async fn end(worker: TestWorker, proxy: &StatementProxy) {
    drop(worker);
    proxy.block();
    eventually_or(SETTLES, async || proxy.under_way() == 0).await;
}

/// A worker that reaches the database through a proxy.
fn worker(rig: &Rig, proxy: &StatementProxy) -> TestWorker {
    // Each of its jobs would open a connection at the start.
    let options = through(rig.world.options.clone(), proxy).set("SELLER_API__DATABASE__POOL_SIZE", 2);
    TestWorker::start(&options, &rig.world.database)
}

/// Two deliveries of one queue. The receiver refuses the first attempt and answers each further one after a
/// delay.
struct Deliveries {
    own: Integration,
    receiver: Receiver,
}

impl Deliveries {
    async fn new(rig: &Rig, delay: Duration) -> Self {
        let (own, receiver, _) = rig.world.subscribed().await;
        receiver.answers(Reply::Late(204, delay));
        Self { own, receiver }
    }
}

impl Work for Deliveries {
    const STATEMENTS: &'static [&'static str] = &[
        "client_id <> all",
        "in_hand",
        "update deliveries as d set attempt",
    ];
    const OPEN: &'static str = "select (select count(*) from deliveries where due_at is not null) + \
         (select count(*) from subscriptions where leased)";
    const LEASED: &'static str = "select id || ' ' || fence from subscriptions where leased";

    async fn prepare(&self, world: &World) {
        self.receiver.answers_first(&[Reply::Status(500)]);
        let order = world.any_order(&self.own.seller).await;
        world.move_order(&order.id, "payment").await.expect(200);
    }

    /// Every recorded attempt was made. Every attempt is recorded, except the one whose record was lost.
    async fn judge(&self, rig: &Rig) -> Verdict {
        let mut arrived = BTreeMap::<String, i64>::new();
        for one in self.receiver.received() {
            *arrived.entry(one.delivery().to_owned()).or_default() += 1;
        }
        let recorded = "select id || ' ' || attempt from deliveries where delivered_at is not null";
        let recorded: BTreeMap<_, _> = rig
            .list(recorded)
            .await
            .iter()
            .map(|row| {
                let (id, attempts) = row.split_once(' ').unwrap();
                (id.to_owned(), attempts.parse::<i64>().unwrap())
            })
            .collect();
        for (id, arrived) in arrived {
            let attempts = recorded.get(&id).copied().unwrap_or(0);
            if attempts == 0 || !(attempts..=attempts + 1).contains(&arrived) {
                return Err(format!("of {arrived} attempts {attempts} are recorded"));
            }
        }
        Ok(())
    }
}

/// Pays orders while a worker has leased the queue of their deliveries and releases it.
async fn queue_while_a_worker_releases(rig: &mut Rig) -> Verdict {
    let (own, receiver, _) = rig.world.subscribed().await;
    receiver.answers(Reply::Late(204, Duration::from_millis(150)));
    let proxy = StatementProxy::to(&rig.world.database);
    let _worker = worker(rig, &proxy);
    let is_lost = AtomicBool::new(false);
    let case = Trade::of(own, async |world: &World, own: &Integration| {
        let arrived = receiver.count();
        let call = pays(world, own).await;
        let came = eventually_or(STARTS, async || receiver.count() > arrived).await;
        is_lost.fetch_or(!came, Ordering::Relaxed);
        call
    });
    let released = async |rig: &Rig| {
        let leased = "select count(*) from subscriptions where leased";
        eventually_or(OVERTAKING, async || rig.count(leased).await == 0).await
    };
    let verdict = rig.check_meanwhile(&case, released, async |_, _| Ok(())).await;
    if is_lost.load(Ordering::Relaxed) {
        return Err("a delivery is due in a queue that sleeps: it did not come".to_owned());
    }
    verdict
}

/// Statements that run now, but those that wait for a lock.
const UNDER_WAY: &str = "select count(*) from pg_stat_activity where datname = current_database() \
    and pid <> pg_backend_pid() and state = 'active' and wait_event_type is distinct from 'Lock'";

/// A delivered parcel.
struct Parcels {
    own: Integration,
    carrier: CarrierStub,
}

impl Work for Parcels {
    const STATEMENTS: &'static [&'static str] = &[
        "candidates",
        "parcels where",
        "seller_orders",
        "insert into changes",
        "commit",
    ];
    const OPEN: &'static str = "select count(*) from parcels";

    async fn prepare(&self, world: &World) {
        self.carrier
            .answers("PARCEL", StubAnswer::State("adopted_at_source_branch"));
        let order = world.paid_order(&self.own.trader()).await;
        let parcel = json!({"carrier": "inpost", "tracking_number": "PARCEL"});
        world.ship(&self.own.token, &order.id, &parcel).await.expect(201);
        self.carrier
            .answers("PARCEL", StubAnswer::Delivered("2015-09-17T11:28:00.000+02:00"));
    }

    async fn judge(&self, rig: &Rig) -> Verdict {
        let shipped = "select count(*) from seller_orders where status = 'shipped'";
        match rig.count(shipped).await {
            0 => Ok(()),
            left => Err(format!("{left} orders are shipped but not delivered")),
        }
    }
}

struct Mails {
    own: Integration,
    folder: PathBuf,
}

impl Work for Mails {
    const STATEMENTS: &'static [&'static str] = &["due as materialized", "update mails"];
    const OPEN: &'static str = "select count(*) from mails where due_at is not null";

    async fn prepare(&self, world: &World) {
        let order = world.paid_order(&self.own.trader()).await;
        let parcel = json!({"carrier": "dpd", "tracking_number": order.number});
        world.ship(&self.own.token, &order.id, &parcel).await.expect(201);
    }

    /// A mail that is sent again has the same id and so the same file.
    async fn judge(&self, rig: &Rig) -> Verdict {
        let sent = "select count(*) from mails where sent_at is not null";
        let sent = usize::try_from(rig.count(sent).await).unwrap();
        let files = std::fs::read_dir(&self.folder).unwrap();
        let texts = files.filter_map(|file| std::fs::read_to_string(file.ok()?.path()).ok());
        match texts.filter(|text| text.contains("ewa@buyer.example")).count() {
            there if there == sent => Ok(()),
            there => Err(format!("{sent} mails are recorded as sent, {there} were sent")),
        }
    }
}

async fn deliveries() -> Verdict {
    let rig = Rig::with(None, soon_again).await;
    let work = Deliveries::new(&rig, Duration::from_millis(100)).await;
    Workers::new(rig).check(&work).await
}

async fn parcels() -> Verdict {
    let carrier = CarrierStub::start().await;
    let rig = Rig::with(None, |options| asks(&carrier, options)).await;
    let work = Parcels {
        own: rig.world.integration().await,
        carrier,
    };
    Workers::new(rig).check(&work).await
}

async fn mails() -> Verdict {
    let folder = tempfile::tempdir().unwrap();
    let mail = folder.path().join("mail");
    let rig = Rig::with(None, |options| mails_to(options, &mail)).await;
    let work = Mails {
        own: rig.world.integration().await,
        folder: mail.clone(),
    };
    Workers::new(rig).check(&work).await
}

/// Concurrently, since each spends most of its time waiting for workers.
#[tokio::test]
async fn a_delivery_a_parcel_and_a_mail_are_done_once() {
    let queue = async {
        let mut rig = Rig::with(None, blackbox::local_receivers).await;
        queue_while_a_worker_releases(&mut rig).await
    };
    let (deliveries, parcels, mails, queue) = tokio::join!(deliveries(), parcels(), mails(), queue);
    deliveries.expect("deliveries");
    parcels.expect("parcels");
    mails.expect("mails");
    queue.expect("a queue wakes for what is queued while it is released");
}
