//! The connection breaks at a COMMIT and the database is unreachable for a while: the answer states the real
//! outcome, or the key stays taken. Crash points test the case with a reachable database.

use blackbox::{CALLBACK, Callback, Expect, Pair, Trader, World, eventually, parcel};
use chrono::TimeDelta;
use serde_json::json;
use testkit::{Answer, Fault, Request, StatementProxy};

use crate::PROGRAM;

/// A world whose server connects through a proxy and sends no commits by itself.
async fn prepared() -> (World, StatementProxy, Trader, String) {
    let alone = |options: testkit::ServerOptions| {
        let options = options.set("SELLER_API__SERVER__WORKERS", "none");
        options.set("SELLER_API__SERVER__THREADS", 1)
    };
    let (world, link) = World::over_a_link(PROGRAM, alone).await;
    let trader = world.trader().await;
    let order = world.paid_order(&trader).await.id;
    (world, link, trader, order)
}

fn ship(world: &World, trader: &Trader, order: &str) -> Request {
    let request = world.shipping(&trader.token, order, &parcel("AAAA1"));
    request.header("idempotency-key", "k")
}

/// Repeats until the claim of the first request is decided.
async fn settled(request: impl Fn() -> Request) -> Answer {
    eventually("an answer that settles it", async || {
        let answer = request().send().await;
        let undecided = answer.status == 500
            || answer
                .errors()
                .iter()
                .any(|(code, _)| code == "idempotency_in_progress");
        (!undecided).then_some(answer)
    })
    .await
}

#[tokio::test]
async fn without_a_key_nothing_is_done_twice_and_nothing_is_claimed_that_was_not() {
    let (world, link, trader, _) = prepared().await;
    for loss in [Fault::AnswerLost, Fault::NeverArrives] {
        let order = world.paid_order(&trader).await;
        link.lose_commit(loss);
        let answer = world.ship(&trader.token, &order.id, &parcel("AAAA1")).await;
        link.reached().await;
        let seen = eventually("the order", async || {
            let answer = world
                .get(&trader.token, &format!("/v1/orders/{}", order.id))
                .await;
            (answer.status == 200).then(|| answer.json())
        })
        .await;
        let mails = world.mails(&order.id).await;
        if answer.status != 201 {
            answer.refused(500, "internal_error");
        }
        let is_done = loss == Fault::AnswerLost || answer.status == 201;
        let status = if is_done { "shipped" } else { "processing" };
        assert_eq!((&seen["status"], mails), (&json!(status), i64::from(is_done)));
    }
}

/// The link is blocked at the COMMIT, so the request is answered while its outcome is unknown.
async fn unknown_outcome(loss: Fault) {
    let (world, link, trader, order) = prepared().await;
    let clock = world.database.control_clock().await;
    link.lose_and_block("commit", loss);
    let answer = ship(&world, &trader, &order).send().await;
    link.reached().await;
    answer.refused(500, "internal_error");
    link.unblock();
    world.server.ready().await;
    let repeat = || ship(&world, &trader, &order);
    if loss == Fault::AnswerLost {
        // A commit that succeeded is found as soon as the database is back.
        let found = settled(repeat).await.expect(201);
        assert_eq!(found.must("idempotent-replayed"), "true");
    } else {
        let held = eventually("the database", async || {
            Some(repeat().send().await).filter(|answer| answer.status != 500)
        })
        .await;
        if held.status == 409 {
            held.refused(409, "idempotency_in_progress");
            assert_eq!(world.mails(&order).await, 0);
            clock.advance(TimeDelta::seconds(61)).await;
            settled(repeat).await.expect(201);
        } else {
            // The claim was released meanwhile, after the row's lock, which is fine too.
            held.expect(201);
        }
    }
    assert_eq!(world.mails(&order).await, 1);
    assert_eq!(world.count_in_feed("order.shipped", &order).await, 1);
}

#[tokio::test]
async fn a_commit_that_was_done_is_found_as_soon_as_the_database_is() {
    unknown_outcome(Fault::AnswerLost).await;
}

#[tokio::test]
async fn a_key_stays_claimed_while_the_outcome_is_unknown() {
    unknown_outcome(Fault::NeverArrives).await;
}

#[tokio::test]
async fn the_outcome_is_looked_up_until_the_database_is_back() {
    let (world, link, trader, order) = prepared().await;
    link.lose_and_block("commit", Fault::AnswerLost);
    let outage = async {
        link.reached().await;
        world.database.block_connections().await;
        // The look-up that waits at the link is refused.
        link.unblock();
        world.server.not_ready().await;
        world.database.allow_connections().await;
    };
    let (answer, ()) = tokio::join!(ship(&world, &trader, &order).send(), outage);
    assert_eq!(answer.expect(201).json()["carrier"], "dpd");
}

#[tokio::test]
async fn a_family_survives_an_unknown_outcome() {
    let (world, link, trader, _) = prepared().await;
    let partner = world.partner(&trader.seller, &["offers:read"]).await;
    let mut member = world.member().await;
    let mut pair = world.pair(&mut member.browser, &partner, "offers:read").await;
    for loss in [Fault::AnswerLost, Fault::NeverArrives] {
        link.lose_and_block("select n from pair", loss);
        let unblocked = async {
            link.reached().await;
            link.unblock();
        };
        let (answer, ()) = tokio::join!(world.refresh(&partner, &pair.refresh), unblocked);
        // The transaction that has found no pair issues it, so that a late statement cannot.
        let sent = link.recorded();
        let looked_up = sent
            .iter()
            .rposition(|one| one.sql.contains("coalesce(t.scopes, f.scopes)"));
        let begun = sent.iter().rposition(|one| one.sql.starts_with("begin"));
        assert!(begun < looked_up, "{sent:?}");
        // The real outcome is reported once the database is reachable.
        let next = Pair::of(answer);
        assert!(world.works(&pair.access).await && world.works(&next.access).await);
        pair = next;
    }
    // From the COMMIT on, the work is finished even if the client breaks off.
    let asking = world.asking(&partner, "offers:read");
    let code = world.code(&mut member.browser, &asking).await;
    // While its family is locked, the code drops out of its batch.
    let held = world.open_transaction("select from families for update").await;
    let asked = world.grant_on_wire(&partner, &asking.exchanging(&code)).await;
    world.waiters(1).await;
    link.lose_and_block("commit", Fault::NeverArrives);
    held.end("rollback").await;
    link.reached().await;
    world.reset(asked).await;
    link.unblock();
    let used = "select count(*) from authorization_codes where used_at is not null";
    world.until_count("the exchange", used, &[], 2).await;
}

#[tokio::test]
async fn a_replay_ends_the_family_although_the_answer_to_its_commit_is_lost() {
    let (world, link, trader, _) = prepared().await;
    let partner = world.partner(&trader.seller, &["offers:read"]).await;
    let mut browser = world.member().await.browser;
    for loss in [Fault::AnswerLost, Fault::NeverArrives] {
        for replays_code in [true, false] {
            let asking = world.asking(&partner, "offers:read");
            let code = world.code(&mut browser, &asking).await;
            let first = Pair::of(world.exchange(&partner, &asking, &code).await);
            let next = world.refreshed(&partner, &first.refresh).await;
            link.lose_commit(loss);
            if replays_code {
                world.no_exchange(&partner, &asking, &code, "invalid_grant").await;
            } else {
                world.no_refresh(&partner, &first.refresh, "invalid_grant").await;
            }
            link.reached().await;
            world.has_ended(&partner, &next).await;
        }
    }
}

#[tokio::test]
async fn an_invalid_consent_is_refused_whether_or_not_the_first_commit_succeeded() {
    let (world, link, _, _) = prepared().await;
    let mut browser = world.member().await.browser;
    let own_use = json!({"redirect_uris": [CALLBACK], "scopes": ["offers:read"]});
    let own_use = world.register(&world.seller().await, own_use).await;
    for loss in [Fault::AnswerLost, Fault::NeverArrives] {
        let asking = world.asking(&own_use, "offers:read").path();
        let screen = browser.get(&asking).await.expect(302);
        let screen = screen.must("location").replacen(&world.server.base_url, "", 1);
        link.lose_commit(loss);
        let back = Callback::of(&browser.get(&screen).await);
        link.reached().await;
        assert_eq!(back.get("error"), Some("access_denied"), "{back:?}");
    }
}
