//! Suspension pauses deliveries and reinstatement resumes them; other actions end them permanently (D57, D59,
//! D95).

use blackbox::{
    EVENTS, HOOK_SCOPES, Hook, Integration, Member, Receiver, Reply, Visitor, World, items, text, until,
};
use chrono::TimeDelta;
use serde_json::json;
use testkit::TestClock;

use crate::world_of_hooks;

/// A subscription whose first delivery fails, of another owner's application that a seller has connected.
struct Subscribed {
    world: World,
    clock: TestClock,
    own: Integration,
    browser: Visitor,
    receiver: Receiver,
    hook: Hook,
}

impl Subscribed {
    /// One delivery has failed and waits for its second attempt.
    async fn waiting() -> Self {
        let world = world_of_hooks(&[]).await;
        let clock = world.database.control_clock().await;
        let application = world.partner(&world.seller().await, &HOOK_SCOPES).await;
        let Member { seller, mut browser } = world.member().await;
        let pair = world
            .pair(&mut browser, &application, &HOOK_SCOPES.join(" "))
            .await;
        let token = pair.access;
        let receiver = Receiver::start().await;
        let hook = world.hook(&token, &receiver).await;
        receiver.answers_first(&[Reply::Status(500)]);
        world.any_order(&seller).await;
        world.attempted(&token, &hook, 1).await;
        let own = Integration {
            seller,
            application,
            token,
        };
        Self {
            world,
            clock,
            own,
            browser,
            receiver,
            hook,
        }
    }

    /// Advances the clock beyond the second attempt's time. Due queues are taken in the order of their time,
    /// so everything that could have been sent has been started once a later delivery has arrived.
    async fn its_time_passes(&self) {
        self.clock.advance(TimeDelta::minutes(10)).await;
        let (other, receiver, _) = self.world.subscribed().await;
        self.world.any_order(&other.seller).await;
        receiver.has(1).await;
    }

    /// Ends the subscription, the application, the account or the connection.
    async fn ends(&mut self, what: &str) {
        let (world, own) = (&self.world, &self.own);
        match what {
            "subscription" => drop(world.unsubscribe(&own.token, &self.hook.id).await.expect(204)),
            "application" => world.delete_application(&own.application).await,
            "account" => world.close(&own.seller.id).await,
            _ => drop(self.browser.disconnect(&own.application.client_id).await),
        }
    }
}

/// Deliveries of a subscription whose first attempt has failed, and which have a next one.
const FAILED_ONCE: &str = "select count(*) from deliveries where subscription_id::text = $1 and attempt = 1 \
    and response_status = 500 and due_at is not null";

#[tokio::test]
async fn a_suspension_pauses_deliveries_and_a_reinstatement_resumes_them() {
    let test = Subscribed::waiting().await;
    let (world, hook) = (&test.world, &test.hook);
    world.moved(&test.own.application, "suspension").await;
    world.any_order(&test.own.seller).await;
    test.its_time_passes().await;
    assert_eq!(test.receiver.count(), 1);
    assert_eq!(world.waiting(&hook.id).await, 1, "paused, and nothing new queued");
    world.moved(&test.own.application, "reinstatement").await;
    let arrived = test.receiver.has(2).await;
    assert_eq!(arrived[0].body, arrived[1].body);
    let delivery = world.attempted(&test.own.token, hook, 2).await;
    assert!(delivery["delivered_at"].is_string(), "{delivery}");
    let listed = world.read(&test.own.token, "/v1/webhooks").await;
    assert_eq!(listed["items"][0]["active"], true);
    // Events from now on are delivered again.
    world.any_order(&test.own.seller).await;
    test.receiver.has(3).await;
}

#[tokio::test]
async fn nothing_more_is_delivered_after_the_end_of_subscription_or_application() {
    for what in ["subscription", "application"] {
        let mut test = Subscribed::waiting().await;
        test.ends(what).await;
        test.world.any_order(&test.own.seller).await;
        test.its_time_passes().await;
        let nothing = async || test.world.waiting(&test.hook.id).await == 0;
        until("the end of what waited", nothing).await;
        test.its_time_passes().await;
        assert_eq!(test.receiver.count(), 1, "nothing more was sent");
    }
}

#[tokio::test]
async fn an_ended_connection_is_told_once_to_each_subscription_that_asked() {
    for what in ["connection", "account"] {
        let mut test = Subscribed::waiting().await;
        let (world, own) = (&test.world, &test.own);
        let (alone, both) = (Receiver::start().await, Receiver::start().await);
        let wanted = [(&alone, &EVENTS[6..]), (&both, &EVENTS)];
        let mut hooks = Vec::new();
        for (receiver, events) in wanted {
            receiver.answers_first(&[Reply::Status(500)]);
            hooks.push(world.subscription(&own.token, &receiver.url, events).await);
        }
        world.any_order(&own.seller).await;
        both.has(1).await;
        test.receiver.has(2).await;
        test.ends(what).await;
        alone.has(1).await;
        // The second attempt is due after the first one's result; the other subscription has its last one.
        test.world
            .until_count("its result", FAILED_ONCE, &[&text(&hooks[0], "id")], 1)
            .await;
        let recorded = async || test.world.waiting(&text(&hooks[1], "id")).await == 0;
        until("the other's result", recorded).await;
        test.its_time_passes().await;
        for ((receiver, _), hook) in wanted.iter().zip(&hooks) {
            let last = receiver.hears("connection.ended").await;
            last.is_signed_by(&text(hook, "secret")).await;
            let data = last.json()["data"].clone();
            let event = text(&data, "event_id");
            let seller = &test.own.seller.id;
            let expected = json!({"reason": "disconnected", "seller_id": seller, "event_id": event});
            assert_eq!(data, expected, "{what}");
        }
        let again = alone.has(2).await;
        assert_eq!(again[0].delivery(), again[1].delivery(), "tried as usual");
        // While a result is not recorded, the end of its lease is a lost attempt, which is repeated.
        let recorded = async || test.world.waiting(&text(&hooks[0], "id")).await == 0;
        until("its last result", recorded).await;
        test.its_time_passes().await;
        let counts = [&alone, &both, &test.receiver].map(Receiver::count);
        assert_eq!(counts, [2, 2, 2], "{what}: nothing more was sent");
        if what == "connection" {
            let (world, app) = (&test.world, &test.own.application);
            let token = world
                .pair(&mut test.browser, app, &HOOK_SCOPES.join(" "))
                .await
                .access;
            let delivery = world.attempted(&token, text(&hooks[0], "id"), 2).await;
            assert!(delivery["delivered_at"].is_string(), "{delivery}");
            let listed = world.read(&token, "/v1/webhooks").await;
            assert!(
                items(&listed).iter().all(|one| one["active"] == false),
                "{listed}"
            );
        }
    }
}
