//! What suspension holds and reinstatement resumes, and what ends deliveries for good (D57, D59, D95), also while an attempt
//! is under way.

use std::time::Duration;

use blackbox::{
    HOOK_SCOPES, Hook, Integration, Member, Receiver, Reply, Visitor, World, eventually, local_receivers,
};
use chrono::TimeDelta;
use reqwest::Method;
use testkit::{ServerOptions, TestClock};

use crate::PROGRAM;

/// A subscription with one delivery that failed and waits for its second attempt.
struct Waiting {
    world: World,
    clock: TestClock,
    own: Integration,
    receiver: Receiver,
    hook: Hook,
}

/// A seller's browser, and the application of another seller's that it has let in.
async fn connected(world: &World) -> (Visitor, Integration) {
    let application = world.partner(&world.seller().await, &HOOK_SCOPES).await;
    let Member { seller, mut browser } = world.member().await;
    let pair = world
        .pair(&mut browser, &application, &HOOK_SCOPES.join(" "))
        .await;
    let own = Integration {
        seller,
        application,
        token: pair.access,
    };
    (browser, own)
}

/// What is under way is told by the metrics of the process whose it is.
fn settings(options: ServerOptions) -> ServerOptions {
    local_receivers(options).in_one_process()
}

async fn waiting() -> Waiting {
    let world = World::with(PROGRAM, settings).await;
    let own = world.integration().await;
    waiting_at(world, own).await
}

async fn waiting_at(world: World, own: Integration) -> Waiting {
    let test = begun(world, own, Reply::Status(500)).await;
    eventually("the failure", async || {
        let delivery = test.world.delivery(&test.own.token, &test.hook.id).await;
        delivery["next_retry_at"].is_string().then_some(())
    })
    .await;
    test
}

/// A subscription whose first delivery is to be answered like this.
async fn begun(world: World, own: Integration, answer: Reply) -> Waiting {
    let clock = world.database.control_clock().await;
    let receiver = Receiver::start().await;
    let hook = world.hook(&own.token, &receiver).await;
    receiver.answers_first(&[answer]);
    world.any_order(&own.seller).await;
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
        self.world.any_order(&other.seller).await;
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

    /// The marketplace does this to the application: `suspension`, `reinstatement`.
    async fn moved(&self, step: &str) {
        let client_id = &self.own.application.client_id;
        self.world.move_application(client_id, step).await.expect(200);
    }

    /// The seller disconnects the application, which ends what waits.
    async fn disconnected(&self, browser: &mut Visitor) {
        let page = browser.open("/panel/connections").await.expect(200);
        let action = format!("/panel/connections/{}/disconnect", self.own.application.client_id);
        browser.submit(&page.form(&action)).await.expect(200);
        assert_eq!(self.world.waiting(&self.hook.id).await, 0);
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
    let (world, hook) = (&test.world, &test.hook);
    test.moved("suspension").await;
    world.any_order(&test.own.seller).await;
    test.its_time_passes().await;
    assert_eq!(
        (test.receiver.count(), world.waiting(&hook.id).await),
        (1, 1),
        "held, and nothing new queued"
    );
    test.moved("reinstatement").await;
    let arrived = test.receiver.has(2).await;
    assert_eq!(arrived[0].body, arrived[1].body);
    let token = world.token(&test.own.application).await;
    let delivery = eventually("the note of it", async || {
        let delivery = world.delivery(&token, &hook.id).await;
        delivery["delivered_at"].is_string().then_some(delivery)
    })
    .await;
    assert_eq!(delivery["attempt"], 2);
    let listed = world.get(&token, "/v1/webhooks").await.expect(200).json();
    assert_eq!(listed["items"][0]["active"], true);
    // What happens now is told again.
    world.any_order(&test.own.seller).await;
    test.receiver.has(3).await;
}

#[tokio::test]
async fn a_deleted_subscription_is_told_nothing_more() {
    let test = waiting().await;
    test.world
        .unsubscribe(&test.own.token, &test.hook.id)
        .await
        .expect(204);
    assert_eq!(test.world.waiting(&test.hook.id).await, 0);
    test.world.any_order(&test.own.seller).await;
    test.stops_for_good().await;
}

#[tokio::test]
async fn a_deleted_application_is_told_nothing_more() {
    let test = waiting().await;
    let path = format!("/applications/{}", test.own.application.client_id);
    let answer = test.world.office(Method::DELETE, &path).send().await;
    assert!(matches!(answer.status, 200 | 204), "{answer:?}");
    test.world.any_order(&test.own.seller).await;
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
    let world = World::with(PROGRAM, settings).await;
    let (mut browser, own) = connected(&world).await;
    let test = waiting_at(world, own).await;
    let world = &test.world;
    test.disconnected(&mut browser).await;

    let scope = HOOK_SCOPES.join(" ");
    let anew = world.pair(&mut browser, &test.own.application, &scope).await;
    let anew = anew.access;
    world.any_order(&test.own.seller).await;
    let listed = world.get(&anew, "/v1/webhooks").await.expect(200).json();
    assert_eq!(listed["items"][0]["active"], false);
    let told = Receiver::start().await;
    world.hook(&anew, &told).await;
    world.any_order(&test.own.seller).await;
    told.has(1).await;
    test.stops_for_good().await;
}

/// A subscription whose first delivery the receiver has, and not answered yet.
async fn under_way() -> Waiting {
    let world = World::with(PROGRAM, settings).await;
    let own = world.integration().await;
    under_way_at(world, own).await
}

async fn under_way_at(world: World, own: Integration) -> Waiting {
    let test = begun(world, own, Reply::Late(500, Duration::from_secs(1))).await;
    test.receiver.has(1).await;
    test
}

#[tokio::test]
async fn an_attempt_that_is_under_way_at_the_suspension_counts_and_what_follows_is_held() {
    let test = under_way().await;
    test.moved("suspension").await;
    let noted = "select count(*) from deliveries where subscription_id::text = $1 and attempt = 1 \
        and response_status = 500 and due_at is not null";
    eventually("the note of its end", async || {
        (test.world.count(noted, &test.hook.id).await == 1).then_some(())
    })
    .await;
    test.its_time_passes().await;
    assert_eq!(test.receiver.count(), 1, "held");
    test.moved("reinstatement").await;
    let arrived = test.receiver.has(2).await;
    assert_eq!(arrived[0].delivery(), arrived[1].delivery());
}

#[tokio::test]
async fn an_attempt_that_is_under_way_at_the_end_of_its_subscription_is_the_last() {
    let test = under_way().await;
    let Waiting { world, own, hook, .. } = &test;
    world.unsubscribe(&own.token, &hook.id).await.expect(204);
    test.attempts_end().await;
    test.stops_for_good().await;
    let path = format!("/v1/webhooks/{}/deliveries", hook.id);
    world.get(&own.token, &path).await.expect(404);
}

#[tokio::test]
async fn an_attempt_that_is_under_way_at_the_end_of_its_application_is_the_last() {
    let test = under_way().await;
    let path = format!("/applications/{}", test.own.application.client_id);
    test.world.office(Method::DELETE, &path).send().await.expect(204);
    test.attempts_end().await;
    test.stops_for_good().await;
}

#[tokio::test]
async fn an_attempt_that_is_under_way_at_the_disconnection_is_the_last() {
    let world = World::with(PROGRAM, settings).await;
    let (mut browser, own) = connected(&world).await;
    let test = under_way_at(world, own).await;
    test.disconnected(&mut browser).await;
    test.attempts_end().await;
    test.stops_for_good().await;
}
