//! A key that seals is replaced: nothing that was sealed is lost, and nothing stays under the old one.

use std::time::Duration;

use blackbox::{EVENTS, Expect, Finished, Receiver, Visitor, World, local_receivers, offer_line, run};
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::{Answer, ServerOptions, TestServer, sealing_key};

use crate::{
    PROGRAM,
    admin::audit,
    exit_codes::{interrupted, started},
};

const KEYS: &str = "SELLER_API__KEYS__SEALING";
/// Every column of sealed values.
const COLUMNS: [&str; 4] = [
    "subscriptions.secret",
    "idempotency.body",
    "account_mails.url",
    "flashes.sealed",
];

fn id(key: &str) -> &str {
    key.split_once(':').expect("<id>:<base64>").0
}

/// Runs `admin keys` with these keys.
async fn admin(world: &World, keys: &str, command: &[&str]) -> Finished {
    let environment = [("DATABASE_URL", world.database.url()), (KEYS, keys)];
    run(PROGRAM, &[&["admin", "keys"], command].concat(), &environment).await
}

/// How many values of each column a key seals, by `admin keys status`, and what it is to the keys given.
async fn sealed_by(world: &World, keys: &str, key: &str) -> (Vec<u64>, String) {
    let told = admin(world, keys, &["status", "--json"]).await.success().stdout;
    let lines = told
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let lines: Vec<_> = lines.filter(|line| line["key"] == id(key)).collect();
    let columns = lines.iter().map(|line| line["column"].as_str().unwrap());
    assert!(columns.eq(COLUMNS), "{told}");
    let values = lines.iter().map(|line| line["values"].as_u64().unwrap());
    (values.collect(), lines[0]["state"].as_str().unwrap().to_owned())
}

/// Something sealed of every kind, and what it is worth.
struct Sealed {
    token: String,
    body: Value,
    made: Answer,
    cursor: String,
    member: Visitor,
    once: String,
    trader: blackbox::Trader,
    receiver: Receiver,
}

impl Sealed {
    async fn by(world: &World) -> Self {
        let (own, receiver) = (world.integration().await, Receiver::start().await);
        let body = json!({"url": receiver.url, "events": EVENTS});
        let request = world
            .subscribing(&own.token, &body)
            .header("idempotency-key", "once");
        let made = request.send().await.expect(201);
        let lines: Vec<_> = (1..=3).map(|n| offer_line(n, json!({}))).collect();
        world.import(&own.seller, lines.join("\n")).await.expect(200);
        let page = world
            .get(&own.token, "/v1/offers?limit=1")
            .await
            .expect(200)
            .json();
        // Without a mail server or folder, the invitation waits.
        let invited = json!({"name": "Kettles", "email": "invited@shop.example"});
        world.office_post("/sellers", &invited).await.expect(201);
        let mut member = world.member().await.browser;
        let form = member.open("/panel/tokens").await.form("/panel/tokens");
        let form = form.with("name", "night script").with("scopes", "offers:read");
        let shown = member.post(&form).await.expect(303);
        let once = shown.must("location").replace(&world.server.base_url, "");
        Self {
            trader: own.trader(),
            token: own.token,
            body,
            made,
            cursor: page["next"].as_str().expect("more than one offer").to_owned(),
            member,
            once,
            receiver,
        }
    }

    /// All that lies in the database is worth what it was.
    async fn is_whole(&self, world: &World) {
        let request = world.subscribing(&self.token, &self.body);
        let again = request.header("idempotency-key", "once").send().await.expect(201);
        assert_eq!(again.header("idempotent-replayed"), Some("true"));
        assert_eq!(again.bytes, self.made.bytes, "secret and all");
        self.delivers(world).await;
    }

    /// Deliveries are signed as ever.
    async fn delivers(&self, world: &World) {
        let secret = self.made.json()["secret"].as_str().unwrap().to_owned();
        let before = self.receiver.count();
        world.paid_order(&self.trader).await;
        for delivery in &self.receiver.has(before + 2).await[before..] {
            delivery.is_signed_by(&secret).await;
        }
    }

    async fn next_page(&self, world: &World) -> Answer {
        let path = format!("/v1/offers?limit=1&after={}", self.cursor);
        world.get(&self.token, &path).await
    }
}

#[tokio::test]
async fn a_key_is_replaced_and_nothing_sealed_is_lost() {
    let (old, new) = (sealing_key(), sealing_key());
    let both = format!("{new},{old}");
    let mut world = World::with(PROGRAM, |options| local_receivers(options).set(KEYS, &old)).await;
    let sealed = Sealed::by(&world).await;
    let (counts, state) = sealed_by(&world, &old, &old).await;
    assert_eq!(state, "seals");
    assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
    assert_eq!(counts[0], 1);

    world.restart(|options| options.set(KEYS, &both)).await;
    sealed.is_whole(&world).await;
    sealed.next_page(&world).await.expect(200);
    assert_eq!(
        sealed_by(&world, &both, &old).await,
        (counts.clone(), "opens".to_owned())
    );
    assert_eq!(sealed_by(&world, &both, &new).await.1, "seals");

    admin(&world, &both, &["reseal", "--dry-run"]).await.success();
    assert_eq!(
        sealed_by(&world, &both, &old).await.0,
        counts,
        "nothing was written"
    );
    let about = ["audit", "list", "--about", id(&new)];
    let unknown = crate::admin::admin(&world, &about).await.ended(3);
    assert!(unknown.stderr.contains(id(&new)), "{}", unknown.stderr);
    let told = admin(&world, &both, &["reseal"]).await.success().stdout;
    let noted = audit(&world, &["--about", id(&new)]).await;
    assert_eq!(noted.len(), 1, "{noted:?}");
    assert_eq!(noted[0]["action"], "keys.resealing_begun");
    assert!(told.contains("subscriptions.secret: 1 sealed anew"), "{told}");
    // What else is sealed ends by itself.
    let left = sealed_by(&world, &both, &old).await.0;
    assert_eq!(left, [&[0], &counts[1..]].concat());
    assert_eq!(sealed_by(&world, &both, &new).await.0[0], 1);
    let told = admin(&world, &both, &["reseal", "--json"]).await.success().stdout;
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["column"], json!(COLUMNS[0]));
    assert_eq!((&told["resealed"], &told["key"]), (&json!(0), &json!(id(&new))));
    let told = admin(&world, &both, &["reseal"]).await.success().stdout;
    assert!(told.contains("subscriptions.secret: 0 sealed anew"), "{told}");

    let mails = TempDir::new().unwrap();
    world
        .restart(|options| {
            options
                .set(KEYS, &both)
                .set("SELLER_API__MAIL__FOLDER", mails.path().display())
                .set("SELLER_API__MAIL__SENDER_NAME", "Shop")
                .set("SELLER_API__MAIL__SENDER_ADDRESS", "shop@shop.example")
        })
        .await;
    let mut member = world.visitor();
    member.cookies.clone_from(&sealed.member.cookies);
    let shown = member.open(&sealed.once).await.expect(200);
    world.get(&shown.text_of("secret"), "/v1/me").await.expect(200);
    let invitation = blackbox::eventually("the invitation", async || {
        let mut files = std::fs::read_dir(mails.path())
            .unwrap()
            .map(|file| file.unwrap().path());
        let mail = files.find(|file| file.extension().is_some_and(|ending| ending == "eml"))?;
        Some(std::fs::read_to_string(mail).unwrap().replace("=\r\n", ""))
    })
    .await;
    let (_, link) = invitation.split_once("/panel/invitation/").expect("a link");
    let link = link.split_whitespace().next().unwrap();
    world
        .visitor()
        .open(&format!("/panel/invitation/{link}"))
        .await
        .expect(200);

    // Without the old key what it sealed for webhooks goes on, and nothing else.
    world.restart(|options| options.set(KEYS, &new)).await;
    sealed.delivers(&world).await;
    sealed.next_page(&world).await.invalid(&["after"]);
}

#[tokio::test]
async fn what_does_not_open_is_told_and_left_alone() {
    let (old, new) = (sealing_key(), sealing_key());
    let world = World::with(PROGRAM, |options| local_receivers(options).set(KEYS, &old)).await;
    Sealed::by(&world).await;
    let before = sealed_by(&world, &old, &old).await.0;
    let (counts, state) = sealed_by(&world, &new, &old).await;
    assert_eq!((counts, state.as_str()), (before.clone(), "missing"));
    for command in [&["reseal"][..], &["reseal", "--dry-run"]] {
        let refused = admin(&world, &new, command).await.failure();
        let told = format!(
            "values do not open under the key \"{}\", which is not in",
            id(&old)
        );
        assert!(refused.stderr.contains(&told), "{}", refused.output());
    }
    assert_eq!(sealed_by(&world, &old, &old).await.0, before);
    let without = admin(&world, "", &["status"]).await.failure();
    assert!(without.stderr.contains("keys.sealing"), "{}", without.output());
}

/// Another key under the id of this one.
fn forged(key: &str) -> String {
    format!("{}:{}", id(key), sealing_key().split_once(':').unwrap().1)
}

#[tokio::test]
async fn nothing_is_sealed_by_another_key_under_an_id_that_is_taken() {
    let (old, new) = (sealing_key(), sealing_key());
    let world = World::with(PROGRAM, |options| local_receivers(options).set(KEYS, &old)).await;
    Sealed::by(&world).await;
    let before = sealed_by(&world, &old, &old).await.0;
    let wrong = forged(&old);
    let told = format!("under its id \"{}\"", id(&old));
    let options = ServerOptions::new(PROGRAM).set(KEYS, &wrong);
    let server = TestServer::listen(&options, world.database.url()).await;
    server.not_ready().await;
    let url = format!("{}/readyz", server.backoffice_url);
    let answer = world.client.get(&url).send().await;
    assert_eq!(answer.status, 503);
    let reason = String::from_utf8(answer.bytes).unwrap();
    assert!(
        reason.contains("under its id") && reason.contains(id(&old)),
        "{reason}"
    );
    server
        .log_with(|log| log.contains("not ready") && log.contains("under its id"))
        .await;
    let is_wrong = (before.clone(), "wrong".to_owned());
    assert_eq!(sealed_by(&world, &wrong, &old).await, is_wrong);
    for command in [&["reseal"][..], &["reseal", "--dry-run"]] {
        let refused = admin(&world, &wrong, command).await.ended(1);
        assert!(refused.stderr.contains(&told), "{}", refused.output());
    }

    // Behind a right one it seals nothing, and is told of.
    let behind = format!("{new},{wrong}");
    let options = ServerOptions::new(PROGRAM).set(KEYS, &behind);
    let server = TestServer::listen(&options, world.database.url()).await;
    server.ready().await;
    let named =
        |log: &str| log.contains("do not open what is stored under their ids") && log.contains(id(&old));
    server.log_with(named).await;
    assert_eq!(sealed_by(&world, &behind, &old).await, is_wrong);
    let refused = admin(&world, &behind, &["reseal"]).await.ended(1);
    assert!(refused.stderr.contains("though it is in"), "{}", refused.output());
    assert_eq!(sealed_by(&world, &old, &old).await, (before, "seals".to_owned()));
    world.office_get("/sellers").await.expect(200);
}

#[tokio::test]
async fn a_single_value_that_was_changed_makes_no_other_key() {
    let (old, new) = (sealing_key(), sealing_key());
    let both = format!("{new},{old}");
    let world = World::with(PROGRAM, |options| local_receivers(options).set(KEYS, &old)).await;
    Sealed::by(&world).await;
    let client = world.database.connect().await;
    let ready = ServerOptions::new(PROGRAM).set(KEYS, &old);
    let changed = "update subscriptions set secret = set_byte(secret, length(secret) - 1, 255 - get_byte(secret, length(secret) - 1))";
    client.batch_execute(changed).await.unwrap();
    let server = TestServer::listen(&ready, world.database.url()).await;
    server.ready().await;
    let refused = admin(&world, &both, &["reseal"]).await.failure();
    assert!(refused.stderr.contains("though it is in"), "{}", refused.output());
    let (counts, state) = sealed_by(&world, &both, &old).await;
    assert_eq!((counts[0], state.as_str()), (1, "opens"));
}

#[tokio::test]
async fn a_key_that_is_missing_is_named_at_the_start_and_stops_nothing() {
    let (old, new) = (sealing_key(), sealing_key());
    let world = World::with(PROGRAM, |options| local_receivers(options).set(KEYS, &old)).await;
    Sealed::by(&world).await;
    let options = ServerOptions::new(PROGRAM).set(KEYS, &new);
    let server = TestServer::listen(&options, world.database.url()).await;
    server.ready().await;
    let named = |log: &str| log.contains("not in `keys.sealing`") && log.contains(id(&old));
    server.log_with(named).await;
    // Whoever has both has nothing to be told.
    let options = ServerOptions::new(PROGRAM).set(KEYS, format!("{new},{old}"));
    let server = TestServer::listen(&options, world.database.url()).await;
    server.ready().await;
    let log = server.log_with(|log| log.contains("ready")).await;
    assert!(!log.contains("not in `keys.sealing`"), "{log}");
}

#[tokio::test]
async fn sealing_anew_that_was_interrupted_is_run_again() {
    let (old, new) = (sealing_key(), sealing_key());
    let both = format!("{new},{old}");
    let world = World::with(PROGRAM, |options| local_receivers(options).set(KEYS, &old)).await;
    Sealed::by(&world).await;
    let before = sealed_by(&world, &both, &old).await.0;
    let mut holder = world.database.connect().await;
    // The command waits for this one, and has begun by then.
    let held = holder.transaction().await.unwrap();
    held.execute("select from subscriptions for update", &[])
        .await
        .unwrap();
    let environment = [("DATABASE_URL", world.database.url()), (KEYS, both.as_str())];
    let resealing = started(&["admin", "keys", "reseal"], &environment);
    let begun = "select count(*) from audit_log where action = 'keys.resealing_begun' and $1 <> ''";
    blackbox::eventually("sealing anew begins", async || {
        (world.count(begun, id(&new)).await == 1).then_some(())
    })
    .await;
    interrupted(resealing).await;
    held.rollback().await.unwrap();
    // The server may still carry out the one statement that was under way.
    let after = sealed_by(&world, &both, &old).await.0;
    assert!(
        after[0] <= before[0] && after[1..] == before[1..],
        "{before:?}, {after:?}"
    );
    admin(&world, &both, &["reseal"]).await.success();
    assert_eq!(sealed_by(&world, &both, &old).await.0[0], 0);
}

#[tokio::test]
async fn a_value_that_somebody_holds_is_waited_for() {
    let (old, new) = (sealing_key(), sealing_key());
    let both = format!("{new},{old}");
    let world = World::with(PROGRAM, |options| local_receivers(options).set(KEYS, &old)).await;
    Sealed::by(&world).await;
    let mut holder = world.database.connect().await;
    let held = holder.transaction().await.unwrap();
    held.execute("select from subscriptions for update", &[])
        .await
        .unwrap();
    let refused = admin(&world, &both, &["reseal"]).await.failure();
    assert!(
        refused.stderr.contains("1 values were in the hands"),
        "{}",
        refused.output()
    );
    let resealing = admin(&world, &both, &["reseal"]);
    let letting_go = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        held.rollback().await.unwrap();
    };
    let (finished, ()) = tokio::join!(resealing, letting_go);
    finished.success();
    assert_eq!(sealed_by(&world, &both, &old).await.0[0], 0);
}
