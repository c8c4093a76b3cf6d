//! The connection breaks in the very moment of a COMMIT that issues tokens: the answer tells what really happened, and a
//! client that tries again is never taken for a thief.

use blackbox::{Application, Asking, Callback, Expect, Member, Pair, World};
use testkit::{Link, LostCommit, ServerOptions};

use crate::PROGRAM;

/// A world whose server reaches its database over a link, and which commits nothing of its own accord.
async fn prepared() -> (World, Link, Member, Application) {
    let options = |options: ServerOptions| {
        options
            .set("SELLER_API__SERVER__WORKERS", "none")
            .set("SELLER_API__OAUTH__TOKEN_LIMIT_PER_IP", 100_000)
            .set("SELLER_API__OAUTH__TOKEN_LIMIT_PER_CLIENT", 100_000)
    };
    let (world, link) = World::over_a_link(PROGRAM, options).await;
    let member = world.member().await;
    let application = world.partner(&world.seller().await, &["offers:read"]).await;
    (world, link, member, application)
}

/// The pair works in every respect, and so does what comes of it.
async fn is_whole(world: &World, application: &Application, pair: &Pair) -> Pair {
    assert!(world.works(&pair.access).await);
    let next = Pair::of(world.refresh(application, &pair.refresh).await);
    assert!(world.works(&pair.access).await && world.works(&next.access).await);
    next
}

#[tokio::test]
async fn a_refresh_whose_answer_got_lost_is_answered_by_what_was_done() {
    let (world, link, mut member, application) = prepared().await;
    let mut pair = world.pair(&mut member.browser, &application, "offers:read").await;
    for loss in [LostCommit::Done, LostCommit::Undone, LostCommit::Done] {
        link.lose(loss);
        let answer = world.refresh(&application, &pair.refresh).await;
        link.lost().await;
        // Done: what was committed is found. Undone: it surely was not, so it is done again within the request.
        pair = is_whole(&world, &application, &Pair::of(answer)).await;
    }
}

#[tokio::test]
async fn an_exchange_whose_answer_got_lost_is_answered_by_what_was_done() {
    let (world, link, mut member, application) = prepared().await;
    for loss in [LostCommit::Done, LostCommit::Undone] {
        let asking: Asking = world.asking(&application, "offers:read");
        let code = world.code(&mut member.browser, &asking).await;
        link.lose(loss);
        let answer = world.exchange(&application, &asking, &code).await;
        link.lost().await;
        is_whole(&world, &application, &Pair::of(answer)).await;
        // And a replay is one all the same.
        world
            .exchange(&application, &asking, &code)
            .await
            .oauth_error(400, "invalid_grant");
    }
}

#[tokio::test]
async fn a_consent_whose_answer_got_lost_is_answered_by_what_was_done() {
    let (world, link, mut member, application) = prepared().await;
    for loss in [LostCommit::Done, LostCommit::Undone, LostCommit::Done] {
        let asking = world.asking(&application, "offers:read");
        let page = world.screen(&mut member.browser, &asking).await;
        let form = page.form("/panel/consent").press("decision", "approve");
        link.lose(loss);
        let answer = member.browser.post(&form).await;
        link.lost().await;
        // Done: the stored code is the one that goes back. Undone: it surely was not stored, so the decision is made again.
        let code = Callback::of(&answer).code();
        Pair::of(world.exchange(&application, &asking, &code).await);
        member.browser.post(&form).await.expect(410);
    }
    assert_eq!(codes(&world, &application).await, 3, "one for each consent");
}

#[tokio::test]
async fn a_refusal_whose_answer_got_lost_stays_one() {
    let (world, link, mut member, application) = prepared().await;
    for loss in [LostCommit::Done, LostCommit::Undone] {
        let asking = world.asking(&application, "offers:read");
        let page = world.screen(&mut member.browser, &asking).await;
        let form = page.form("/panel/consent").press("decision", "deny");
        link.lose(loss);
        let back = Callback::of(&member.browser.post(&form).await);
        link.lost().await;
        assert_eq!(back.get("error"), Some("access_denied"), "{back:?}");
        let approval = page.form("/panel/consent").press("decision", "approve");
        member.browser.post(&approval).await.expect(410);
    }
    assert_eq!(codes(&world, &application).await, 0);
}

/// How many codes the application was ever given.
async fn codes(world: &World, application: &Application) -> i64 {
    let of_it = "select count(*) from authorization_codes c join families f on f.id = c.family_id \
                 join applications a on a.client_id = f.client_id where a.name = $1";
    world.count(of_it, &application.name).await
}

#[tokio::test]
async fn while_nobody_can_know_the_family_stays_alive() {
    let (world, link, mut member, application) = prepared().await;
    let pair = world.pair(&mut member.browser, &application, "offers:read").await;
    link.lose_and_block(LostCommit::Undone);
    let asked = {
        let form = blackbox::encoded(&[
            ("grant_type", "refresh_token"),
            ("refresh_token", pair.refresh.as_str()),
            ("client_id", &application.client_id),
            ("client_secret", &application.client_secret),
        ]);
        tokio::spawn(world.client.post(&world.url("/oauth/token")).form(&form).send())
    };
    link.lost().await;
    link.unblock();
    let answer = asked.await.unwrap();
    // As soon as the database can be asked, the truth is told.
    is_whole(&world, &application, &Pair::of(answer)).await;
}
