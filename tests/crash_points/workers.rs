//! A worker beside a request: deliveries that are queued while their queue is given back.

use std::time::Duration;

use blackbox::{Integration, Receiver, Reply, World};
use testkit::TestWorker;

use crate::{
    rig::{Held, Rig, eventually_or},
    trade::{Trade, pays},
};

/// How long a worker takes at most to give a queue back.
const GIVEN_BACK: Duration = Duration::from_secs(1);

/// Pays orders while a worker has the queue in hand that the payments are told by, and gives it back.
pub(crate) async fn queues_while_a_worker_gives_back(rig: &mut Rig) -> Held {
    let (own, receiver) = (rig.world.integration().await, Receiver::start().await);
    rig.world.hook(&own.token, &receiver).await;
    receiver.answers(Reply::Late(204, Duration::from_millis(150)));
    let options = rig
        .world
        .options
        .clone()
        .set("SELLER_API__DATABASE__URL", rig.aside.url());
    let _worker = TestWorker::start(&options, &rig.world.database);
    let case = Trade::of(own, async |world: &World, own: &Integration| {
        let arrived = receiver.count();
        let call = pays(world, own).await;
        receiver.has(arrived + 1).await;
        call
    });
    let given_back = async |world: &World| {
        let leased = "select count(*) from subscriptions where leased and $1 = ''";
        eventually_or(GIVEN_BACK, async || world.count(leased, "").await == 0).await
    };
    rig.hold_meanwhile(&case, given_back, async |_, _| Ok(())).await
}

#[tokio::test]
async fn a_queue_wakes_for_what_is_queued_while_it_is_given_back() {
    let mut rig = Rig::with(&[], blackbox::local_receivers).await;
    queues_while_a_worker_gives_back(&mut rig).await.unwrap();
}
