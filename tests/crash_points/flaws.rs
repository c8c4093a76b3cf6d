//! Tests the crash points themselves: each of these flaws, planted between the program and PostgreSQL, is detected.

use std::time::Duration;

use testkit::{Fault, Flaw};

use crate::background_work::{Deliveries, Workers, queue_while_a_worker_releases};
use crate::changes::{case, changes_an_offer, follow_the_feed, orders_one_of_many, orders_the_last};
use crate::rig::{Case, Rig, Verdict};
use crate::tokens::{ALONE, Connected, Counting, Exchange, Refresh, Revocation};

/// Number of tries for a flaw that depends on a worker's pace.
const TRIES: usize = 3;
/// Part of the statement that locks one offer.
const LOCK_OFFER: &str = "from offers where ((offers.seller_id = $1) and (offers.id = $2)) for no key update";
/// Part of the statement that locks a family.
const LOCK_FAMILY: &str = "from families where id = $1 for no key update), ";
/// Part of the statement that leases a queue.
const LEASES: &str = "in_hand";
/// Part of the statement that records attempts.
const RECORDS: &str = "update deliveries as d set attempt = c.next_attempt";
/// Part of the gate's statement.
const GATE: &str = "sum(times)::bigint as times from known where ended is null group by client_id";

/// Asserts that a flaw was planted and is detected as one of these violations.
#[track_caller]
fn is_detected(is_planted: bool, verdict: Verdict, as_one_of: &[&str]) {
    assert!(is_planted, "no statement has the flaw");
    let violation = verdict.expect_err("the flaw is not detected");
    let is_expected = as_one_of.iter().any(|text| violation.contains(text));
    assert!(is_expected, "{violation}");
}

/// A flaw that a case with these faults detects.
async fn with_faults<C: Case>(
    flaw: Flaw,
    faults: &[Fault],
    as_this: &str,
    case: impl AsyncFnOnce(&Rig) -> C,
) {
    let mut rig = Rig::new(&[flaw]).await;
    let case = case(&rig).await;
    let verdict = rig.check_faults(&case, faults).await;
    is_detected(rig.is_flawed(), verdict, &[as_this]);
}

/// A flaw that a rival request detects.
async fn with_rivals<C: Case>(flaws: &[Flaw], case: impl AsyncFnOnce(&Rig) -> C) {
    let mut rig = Rig::new(flaws).await;
    let case = case(&rig).await;
    let verdict = rig.check_against_rivals(&case).await;
    is_detected(rig.is_flawed(), verdict, &["a rival at"]);
}

/// Flaws that deliveries with this fault at this statement detect. The receiver's delay has to be long enough that the test sees the lease
/// of a worker that takes over.
async fn in_deliveries(flaws: &[Flaw], fault: Fault, at: &str, delay: Duration, as_one_of: &[&str]) {
    let rig = Rig::with(&[], blackbox::soon_again).await;
    let work = Deliveries::new(&rig, delay).await;
    let workers = Workers::new(rig, flaws);
    let verdict = workers.check_at(&work, &[fault], &[at]).await;
    is_detected(workers.is_flawed(), verdict, as_one_of);
}

const fn says(this: &'static str, instead_of: &'static str) -> Flaw {
    Flaw::Replaces { this, instead_of }
}

#[tokio::test]
async fn a_flaw_of_a_request_is_detected() {
    tokio::join!(flaws_of_idempotency_and_gate(), flaws_of_locks());
}

async fn flaws_of_idempotency_and_gate() {
    let order = async |rig: &Rig| case(rig, orders_one_of_many).await;
    let offer = async |rig: &Rig| case(rig, changes_an_offer).await.unkeyed();
    let revocation = async |rig: &Rig| Revocation(Connected::new(rig).await);
    let without_fence = says(" and $3::uuid is not null", " and fence = $3 and status is null");
    let stored_apart = Flaw::CommitsBefore("update idempotency set status");
    let event_apart = Flaw::CommitsBefore("insert into changes");
    with_faults(without_fence, &[Fault::Waits], "several answers", order).await;
    with_faults(stored_apart, &[Fault::AnswerLost], "the footprint", order).await;
    with_faults(event_apart, &[Fault::AnswerLost], "the footprint", offer).await;
    with_faults(Flaw::Cached(GATE), &[], "the token works", revocation).await;
    with_faults(
        Flaw::SentAgain(GATE),
        &[Fault::AnswerLost],
        "are counted",
        async |_| Counting,
    )
    .await;
}

async fn flaws_of_locks() {
    let order = async |rig: &Rig| case(rig, orders_the_last).await;
    let exchange = async |rig: &Rig| Exchange(Connected::new(rig).await);
    let refresh = async |rig: &Rig| Refresh::new(rig).await;
    let unlocked_offer = says(
        "from offers where ((offers.seller_id = $1) and (offers.id = $2))",
        LOCK_OFFER,
    );
    let unlocked_family = says("from families where id = $1), ", LOCK_FAMILY);
    with_rivals(&[unlocked_offer], order).await;
    with_rivals(&[Flaw::CommitsAfter(LOCK_OFFER)], order).await;
    let used_again = says(
        "and t.expires_at > g.at",
        "and t.used_at is null and t.expires_at > g.at",
    );
    with_rivals(&[ALONE, unlocked_family], exchange).await;
    with_rivals(&[ALONE, Flaw::CommitsAfter(LOCK_FAMILY)], exchange).await;
    with_rivals(&[used_again], refresh).await;
}

#[tokio::test]
async fn a_flaw_of_deliveries_or_of_the_feed_is_detected() {
    let recorded_twice = [
        says("set attempt = d.attempt + 1,", "set attempt = c.next_attempt,"),
        says(
            "and d.id = c.id ",
            "and d.id = c.id and d.attempt = c.attempt and d.lost = c.lost ",
        ),
    ];
    let without_fence = [
        says("where s.leased order", "where s.fence = k.fence order"),
        says("where q.leased order", "where q.fence = k.fence order"),
    ];
    let asleep = says("for key share of s skip locked", "for update of s skip locked");
    let asleep = async {
        let mut rig = Rig::with(&[asleep], blackbox::local_receivers).await;
        // It shows only if the worker releases while the payment waits.
        let mut verdict = Ok(());
        for _ in 0..TRIES {
            if verdict.is_ok() {
                verdict = queue_while_a_worker_releases(&mut rig).await;
            }
        }
        is_detected(rig.is_flawed(), verdict, &["a queue that sleeps"]);
    };
    let horizon = "and xid < (select pg_snapshot_xmin(pg_current_snapshot())::text::bigint) ";
    let feed = async {
        let mut rig = Rig::new(&[says("", horizon)]).await;
        let verdict = follow_the_feed(&mut rig, Duration::from_secs(5)).await;
        is_detected(rig.is_flawed(), verdict, &["the feed"]);
    };
    // Alone, since each depends on a worker that takes over in time. The feed mostly waits.
    let deliveries = async {
        let (short, long) = (Duration::from_millis(50), Duration::from_secs(2));
        let (twice, stale) = (["are recorded"], ["has become", "are recorded"]);
        in_deliveries(&recorded_twice, Fault::AnswerLost, RECORDS, short, &twice).await;
        in_deliveries(&without_fence, Fault::Waits, LEASES, long, &stale).await;
        asleep.await;
    };
    tokio::join!(deliveries, feed);
}
