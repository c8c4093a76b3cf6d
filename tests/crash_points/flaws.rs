//! Tests the crash points themselves: each of these flaws, planted between the program and PostgreSQL, is detected.

use testkit::{Fault, Flaw};

use crate::{
    background_work::{Deliveries, Workers, queues_while_a_worker_gives_back},
    rig::{Case, Held, Rig},
    tokens::{Counting, Refresh, Revocation},
    trade::{case, changes_an_offer, follows_the_feed, orders_one_of_many, orders_the_last},
};

/// Part of the statement that locks one offer.
const LOCK_OFFER: &str = "from offers where seller_id = $1 and id = $2 for no key update";
/// Part of the statement that locks a family.
const LOCK_FAMILY: &str = "from families where id = $1 for no key update), ";
/// Part of the gate's statement.
const GATE: &str = "sum(times)::bigint as times from live group by client_id";

/// Asserts that a flaw was planted and is detected as this violation.
#[track_caller]
fn shows(rig: &Rig, held: Held, as_this: &str) {
    assert!(rig.is_flawed(), "no statement has the flaw");
    let violation = held.expect_err("the flaw does not show");
    assert!(violation.contains(as_this), "{violation}");
}

async fn shows_in_a_case<C: Case>(
    flaw: Flaw,
    faults: &[Fault],
    as_this: &str,
    case: impl AsyncFnOnce(&Rig) -> C,
) {
    let mut rig = Rig::new(&[flaw]).await;
    let case = case(&rig).await;
    let held = rig.hold_against(&case, faults).await;
    shows(&rig, held, as_this);
}

async fn shows_between_rivals<C: Case>(flaw: Flaw, case: impl AsyncFnOnce(&Rig) -> C) {
    let mut rig = Rig::new(&[flaw]).await;
    let case = case(&rig).await;
    let held = rig.hold_against_rivals(&case).await;
    shows(&rig, held, "a rival at");
}

async fn shows_in_deliveries(flaws: &[Flaw], fault: Fault, as_this: &str) {
    let rig = Rig::with(&[], blackbox::soon_again).await;
    let work = Deliveries::new(&rig).await;
    let workers = Workers::new(rig, flaws);
    let held = workers.hold(&work, &[fault]).await;
    assert!(workers.is_flawed(), "no statement has the flaw");
    let violation = held.expect_err("the flaw does not show");
    assert!(violation.contains(as_this), "{violation}");
}

#[tokio::test]
async fn a_completion_that_forgets_the_fence_is_found() {
    let flaw = Flaw::Says {
        this: " and $5::uuid is not null",
        instead_of: " and fence = $5 and status is null",
    };
    shows_in_a_case(flaw, &[Fault::Waits], "several answers", async |rig| {
        case(rig, orders_one_of_many).await
    })
    .await;
}

#[tokio::test]
async fn an_answer_remembered_apart_from_its_effect_is_found() {
    let flaw = Flaw::CommitsBefore("update idempotency set status");
    shows_in_a_case(flaw, &[Fault::NeverArrives], "it leaves", async |rig| {
        case(rig, orders_one_of_many).await
    })
    .await;
}

#[tokio::test]
async fn events_told_after_the_commit_are_found() {
    let flaw = Flaw::CommitsBefore("insert into changes");
    shows_in_a_case(flaw, &[Fault::NeverArrives], "it leaves", async |rig| {
        case(rig, changes_an_offer).await
    })
    .await;
}

#[tokio::test]
async fn a_queue_put_to_sleep_while_somebody_queues_is_found() {
    let flaw = Flaw::Says {
        this: "case when n.undisturbed or true then",
        instead_of: "case when n.undisturbed then",
    };
    let mut rig = Rig::with(&[flaw], blackbox::local_receivers).await;
    let held = queues_while_a_worker_gives_back(&mut rig).await;
    shows(&rig, held, "a queue that sleeps");
}

#[tokio::test]
async fn an_end_recorded_twice_is_found() {
    let flaw = Flaw::Says {
        this: "and d.id = c.id ",
        instead_of: "and d.id = c.id and d.attempt = c.attempt ",
    };
    shows_in_deliveries(&[flaw], Fault::AnswerLost, "are recorded").await;
}

#[tokio::test]
async fn a_worker_that_gives_back_another_ones_queue_is_found() {
    let flaws = [
        Flaw::Says {
            this: "where s.leased order",
            instead_of: "where s.leased and s.fence = k.fence order",
        },
        Flaw::Says {
            this: "and s.leased",
            instead_of: "and s.leased and s.fence = n.fence",
        },
    ];
    shows_in_deliveries(&flaws, Fault::Waits, "has become").await;
}

#[tokio::test]
async fn stock_taken_without_a_lock_is_found() {
    let flaw = Flaw::Says {
        this: "from offers where seller_id = $1 and id = $2",
        instead_of: LOCK_OFFER,
    };
    shows_between_rivals(flaw, async |rig| case(rig, orders_the_last).await).await;
}

#[tokio::test]
async fn a_lock_of_stock_that_ends_with_its_statement_is_found() {
    shows_between_rivals(Flaw::CommitsAfter(LOCK_OFFER), async |rig| {
        case(rig, orders_the_last).await
    })
    .await;
}

#[tokio::test]
async fn a_feed_that_reads_ahead_of_open_transactions_is_found() {
    let flaw = Flaw::Says {
        this: "",
        instead_of: "and xid < (select pg_snapshot_xmin(pg_current_snapshot())::text::bigint) ",
    };
    let mut rig = Rig::new(&[flaw]).await;
    let held = follows_the_feed(&mut rig).await;
    shows(&rig, held, "the feed");
}

#[tokio::test]
async fn a_gate_that_remembers_tokens_is_found() {
    let case = async |rig: &Rig| Revocation::new(rig).await;
    shows_in_a_case(Flaw::Cached(GATE), &[], "the token works", case).await;
}

#[tokio::test]
async fn a_refresh_judged_before_the_lock_is_found() {
    let flaw = Flaw::Says {
        this: "from families where id = $1), ",
        instead_of: LOCK_FAMILY,
    };
    shows_between_rivals(flaw, async |rig| Refresh::new(rig).await).await;
}

#[tokio::test]
async fn a_lock_of_a_family_that_ends_with_its_statement_is_found() {
    shows_between_rivals(Flaw::CommitsAfter(LOCK_FAMILY), async |rig| {
        Refresh::new(rig).await
    })
    .await;
}

#[tokio::test]
async fn a_count_that_is_sent_again_is_found() {
    shows_in_a_case(
        Flaw::SentAgain(GATE),
        &[Fault::AnswerLost],
        "are counted",
        async |_| Counting,
    )
    .await;
}
