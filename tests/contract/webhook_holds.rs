//! What suspension holds and reinstatement resumes, and what ends deliveries for good (D57, D59, D95), also while an attempt
//! is under way.

use std::time::Duration;

use blackbox::{HOOK_SCOPES, Hook, Integration, Receiver, Reply, World, eventually, line, local_receivers};
use chrono::TimeDelta;
use reqwest::Method;
use serde_json::json;
use testkit::TestClock;

use crate::PROGRAM;

/// A subscription with one delivery that failed and waits for its second attempt.
struct Waiting {
    world: World,
    clock: TestClock,
    own: Integration,
    receiver: Receiver,
    hook: Hook,
}

async fn happens(world: &World, own: &Integration) {
    let offer = world.any_offer(&own.seller, json!({})).await;
    world.unpaid(&[line(&own.seller, &offer, 1)], json!({})).await;
}

async fn waiting() -> Waiting {
    let world = World::with(PROGRAM, local_receivers).await;
    let own = world.integration().await;
    waiting_at(world, own).await
}

async fn waiting_at(world: World, own: Integration) -> Waiting {
    let clock = world.database.control_clock().await;
    let receiver = Receiver::start().await;
    let hook = world.hook(&own.token, &receiver).await;
    receiver.answers_first(&[Reply::Status(500)]);
    happens(&world, &own).await;
    eventually("the failure", async || {
        let delivery = world.delivery(&own.token, &hook.id).await;
        delivery["next_retry_at"].is_string().then_some(())
    })
    .await;
    Waiting {
        world,
        clock,
        own,
        receiver,
        hook,
    }
}

impl Waiting {
    /// Lets the second attempt's time come and pass. Lanes that are due are taken in the order of their time, so that what
    /// could have been sent has been begun once something that came later has arrived.
    async fn its_time_passes(&self) {
        self.clock.advance(TimeDelta::minutes(10)).await;
        let (other, receiver) = (self.world.integration().await, Receiver::start().await);
        self.world.hook(&other.token, &receiver).await;
        happens(&self.world, &other).await;
        receiver.has(1).await;
    }

    /// Until the attempts that were under way have ended, whatever was made of that.
    async fn attempts_end(&self) {
        let metrics = format!("{}/metrics", self.world.server.backoffice_url);
        eventually("the end of what is under way", async || {
            let answer = self.world.client.get(&metrics).send().await.expect(200);
            let text = String::from_utf8(answer.bytes).unwrap();
            text.lines()
                .any(|line| line == "webhook_attempts_in_flight 0")
                .then_some(())
        })
        .await;
    }

    async fn stops_for_good(&self) {
        self.its_time_passes().await;
        eventually("the end of what waited", async || {
            (self.world.waiting(&self.hook.id).await == 0).then_some(())
        })
        .await;
        self.its_time_passes().await;
        assert_eq!(self.receiver.count(), 1, "nothing more was sent");
    }
}

#[tokio::test]
async fn suspension_holds_what_waits_and_reinstatement_resumes_it() {
    let test = waiting().await;
    let Waiting {
        world,
        own,
        receiver,
        hook,
        ..
    } = &test;
    let client_id = &own.application.client_id;
    world.move_application(client_id, "suspension").await.expect(200);
    happens(world, own).await;
    test.its_time_passes().await;
    assert_eq!(
        (receiver.count(), world.waiting(&hook.id).await),
        (1, 1),
        "held, and nothing new queued"
    );
    world
        .move_application(client_id, "reinstatement")
        .await
        .expect(200);
    let arrived = receiver.has(2).await;
    assert_eq!(arrived[0].body, arrived[1].body);
    let token = world.token(&own.application).await;
    let delivery = eventually("the note of it", async || {
        let delivery = world.delivery(&token, &hook.id).await;
        delivery["delivered_at"].is_string().then_some(delivery)
    })
    .await;
    assert_eq!(delivery["attempt"], 2);
    let listed = world.get(&token, "/v1/webhooks").await.expect(200).json();
    assert_eq!(listed["items"][0]["active"], true);
    // What happens now is told again.
    happens(world, own).await;
    receiver.has(3).await;
}

#[tokio::test]
async fn a_deleted_subscription_is_told_nothing_more() {
    let test = waiting().await;
    test.world
        .unsubscribe(&test.own.token, &test.hook.id)
        .await
        .expect(204);
    assert_eq!(test.world.waiting(&test.hook.id).await, 0);
    happens(&test.world, &test.own).await;
    test.stops_for_good().await;
}

#[tokio::test]
async fn a_deleted_application_is_told_nothing_more() {
    let test = waiting().await;
    let path = format!("/applications/{}", test.own.application.client_id);
    let answer = test.world.office(Method::DELETE, &path).send().await;
    assert!(matches!(answer.status, 200 | 204), "{answer:?}");
    happens(&test.world, &test.own).await;
    test.stops_for_good().await;
}

#[tokio::test]
async fn a_closed_account_is_told_nothing_more() {
    let test = waiting().await;
    let path = format!("/sellers/{}/closure", test.own.seller.id);
    test.world.office(Method::POST, &path).send().await.expect(200);
    test.stops_for_good().await;
}

#[tokio::test]
async fn a_disconnected_application_is_told_nothing_more_and_a_new_consent_revives_nothing() {
    let world = World::with(PROGRAM, local_receivers).await;
    let owner = world.seller().await;
    let application = world.partner(&owner, &HOOK_SCOPES).await;
    let mut member = world.member().await;
    let scope = HOOK_SCOPES.join(" ");
    let pair = world.pair(&mut member.browser, &application, &scope).await;
    let own = Integration {
        seller: member.seller.clone(),
        application: application.clone(),
        token: pair.access,
    };
    let test = waiting_at(world, own).await;
    let world = &test.world;
    let page = member.browser.open("/panel/connections").await.expect(200);
    let action = format!("/panel/connections/{}/disconnect", application.client_id);
    member.browser.submit(&page.form(&action)).await.expect(200);
    assert_eq!(world.waiting(&test.hook.id).await, 0);

    let anew = world.pair(&mut member.browser, &application, &scope).await.access;
    happens(world, &test.own).await;
    let listed = world.get(&anew, "/v1/webhooks").await.expect(200).json();
    assert_eq!(listed["items"][0]["active"], false);
    let told = Receiver::start().await;
    world.hook(&anew, &told).await;
    happens(world, &test.own).await;
    told.has(1).await;
    test.stops_for_good().await;
}

/// A subscription whose first delivery the receiver has, and not answered yet.
async fn under_way(world: World, own: Integration, answer: u16) -> Waiting {
    let clock = world.database.control_clock().await;
    let receiver = Receiver::start().await;
    let hook = world.hook(&own.token, &receiver).await;
    receiver.answers_first(&[Reply::Late(answer, Duration::from_secs(1))]);
    happens(&world, &own).await;
    receiver.has(1).await;
    Waiting {
        world,
        clock,
        own,
        receiver,
        hook,
    }
}

#[tokio::test]
async fn an_attempt_that_is_under_way_at_the_suspension_counts_and_what_follows_is_held() {
    let world = World::with(PROGRAM, local_receivers).await;
    let own = world.integration().await;
    let test = under_way(world, own, 500).await;
    let Waiting {
        world,
        own,
        receiver,
        hook,
        ..
    } = &test;
    let client_id = &own.application.client_id;
    world.move_application(client_id, "suspension").await.expect(200);
    let noted = "select count(*) from deliveries where subscription_id::text = $1 and attempt = 1 \
        and response_status = 500 and due_at is not null";
    eventually("the note of its end", async || {
        (world.count(noted, &hook.id).await == 1).then_some(())
    })
    .await;
    test.its_time_passes().await;
    assert_eq!(receiver.count(), 1, "held");
    world
        .move_application(client_id, "reinstatement")
        .await
        .expect(200);
    let arrived = receiver.has(2).await;
    assert_eq!(arrived[0].delivery(), arrived[1].delivery());
}

#[tokio::test]
async fn an_attempt_that_is_under_way_at_the_end_of_its_subscription_is_the_last() {
    let world = World::with(PROGRAM, local_receivers).await;
    let own = world.integration().await;
    let test = under_way(world, own, 500).await;
    let Waiting { world, own, hook, .. } = &test;
    world.unsubscribe(&own.token, &hook.id).await.expect(204);
    test.attempts_end().await;
    test.stops_for_good().await;
    let path = format!("/v1/webhooks/{}/deliveries", hook.id);
    world.get(&own.token, &path).await.expect(404);
}

#[tokio::test]
async fn an_attempt_that_is_under_way_at_the_end_of_its_application_is_the_last() {
    let world = World::with(PROGRAM, local_receivers).await;
    let own = world.integration().await;
    let test = under_way(world, own, 500).await;
    let path = format!("/applications/{}", test.own.application.client_id);
    test.world.office(Method::DELETE, &path).send().await.expect(204);
    test.attempts_end().await;
    test.stops_for_good().await;
}

#[tokio::test]
async fn an_attempt_that_is_under_way_at_the_disconnection_is_the_last() {
    let world = World::with(PROGRAM, local_receivers).await;
    let owner = world.seller().await;
    let application = world.partner(&owner, &HOOK_SCOPES).await;
    let mut member = world.member().await;
    let pair = world
        .pair(&mut member.browser, &application, &HOOK_SCOPES.join(" "))
        .await;
    let own = Integration {
        seller: member.seller.clone(),
        application,
        token: pair.access,
    };
    let test = under_way(world, own, 500).await;
    let page = member.browser.open("/panel/connections").await.expect(200);
    let action = format!("/panel/connections/{}/disconnect", test.own.application.client_id);
    member.browser.submit(&page.form(&action)).await.expect(200);
    assert_eq!(test.world.waiting(&test.hook.id).await, 0);
    test.attempts_end().await;
    test.stops_for_good().await;
}
