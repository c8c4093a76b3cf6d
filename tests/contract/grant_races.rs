//! Races with a transaction of the other side held open: what is being issued waits for it, and sees what it did.

use std::time::Duration;

use blackbox::{Application, Expect, Pair, World, eventually};
use testkit::Answer;
use tokio::task::JoinHandle;

use crate::world_of_consent;

/// A transaction that a test holds open.
struct Held(tokio_postgres::Client);

impl Held {
    async fn begin(world: &World, change: &str) -> Self {
        let client = world.database.connect().await;
        client.batch_execute("begin").await.unwrap();
        let changed = client.execute(change, &[]).await.unwrap();
        assert!(changed > 0, "it changes something: {change}");
        Self(client)
    }

    async fn end(self, how: &str) {
        self.0.batch_execute(how).await.unwrap();
    }
}

/// Waits until some process waits for a lock in the database.
async fn somebody_waits(world: &World) {
    let looking = world.database.connect().await;
    let waiting = "select count(*) from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'";
    eventually("somebody who waits for a lock", async || {
        let count: i64 = looking.query_one(waiting, &[]).await.unwrap().get(0);
        (count > 0).then_some(())
    })
    .await;
}

fn refreshing(world: &World, application: &Application, token: &str) -> JoinHandle<Answer> {
    let form = blackbox::encoded(&[
        ("grant_type", "refresh_token"),
        ("refresh_token", token),
        ("client_id", &application.client_id),
        ("client_secret", &application.client_secret),
    ]);
    tokio::spawn(world.client.post(&world.url("/oauth/token")).form(&form).send())
}

/// A grant, and a change of its row's surroundings held open while a refresh comes.
async fn refreshed_under(change: &str, how: &str) -> (World, Application, Pair, Answer) {
    let world = world_of_consent().await;
    let mut member = world.member().await;
    let application = world.partner(&world.seller().await, &["offers:read"]).await;
    let pair = world.pair(&mut member.browser, &application, "offers:read").await;
    let held = Held::begin(&world, change).await;
    let asked = refreshing(&world, &application, &pair.refresh);
    somebody_waits(&world).await;
    held.end(how).await;
    let answer = tokio::time::timeout(Duration::from_secs(10), asked)
        .await
        .expect("an answer")
        .unwrap();
    (world, application, pair, answer)
}

const REVOKE_FAMILY: &str = "update families set revoked_at = api_now() where kind = 'authorization_code'";
const DISCONNECT: &str = "update connections set generation = generation + 1, disconnected_at = api_now()";
const DELETE: &str = "update applications set deleted_at = api_now() where not built_in";

#[tokio::test]
async fn a_rotation_sees_the_revocation_that_it_waited_for() {
    let (world, _, pair, answer) = refreshed_under(REVOKE_FAMILY, "commit").await;
    answer.oauth_error(400, "invalid_grant");
    assert!(!world.works(&pair.access).await);
}

#[tokio::test]
async fn a_rotation_goes_on_where_the_revocation_was_undone() {
    let (world, _, pair, answer) = refreshed_under(REVOKE_FAMILY, "rollback").await;
    let next = Pair::of(answer);
    assert!(world.works(&pair.access).await && world.works(&next.access).await);
}

#[tokio::test]
async fn a_rotation_against_a_disconnection_issues_nothing_that_lives() {
    let (world, _, pair, answer) = refreshed_under(DISCONNECT, "commit").await;
    answer.oauth_error(400, "invalid_grant");
    assert!(!world.works(&pair.access).await);
}

/// A deletion ends what its application holds at look-up, so issuing need not wait for it.
#[tokio::test]
async fn what_is_issued_while_the_application_is_deleted_is_dead_with_it() {
    let world = world_of_consent().await;
    let mut member = world.member().await;
    let application = world.partner(&world.seller().await, &["offers:read"]).await;
    let pair = world.pair(&mut member.browser, &application, "offers:read").await;
    let held = Held::begin(&world, DELETE).await;
    let (refreshed, own) = (
        refreshing(&world, &application, &pair.refresh),
        world.token_answer(&application),
    );
    let own = own.await;
    held.end("commit").await;
    for answer in [refreshed.await.unwrap(), own] {
        if answer.status == 200 {
            let access = answer.json()["access_token"].as_str().unwrap().to_owned();
            assert!(!world.works(&access).await, "it outlives its application");
        }
    }
    assert!(!world.works(&pair.access).await);
    world
        .token_answer(&application)
        .await
        .oauth_error(401, "invalid_client");
}

#[tokio::test]
async fn an_approval_sees_the_deletion_that_it_waited_for() {
    let world = world_of_consent().await;
    let mut member = world.member().await;
    let application = world.partner(&world.seller().await, &["offers:read"]).await;
    let page = world
        .screen(&mut member.browser, &world.asking(&application, "offers:read"))
        .await;
    let form = page.form("/panel/consent").press("decision", "approve");
    let held = Held::begin(&world, DELETE).await;
    let approving = tokio::spawn(async move { member.browser.post(&form).await });
    somebody_waits(&world).await;
    held.end("commit").await;
    let back = blackbox::Callback::of(&approving.await.unwrap());
    assert_eq!(
        (back.get("error"), back.get("code")),
        (Some("access_denied"), None)
    );
}
