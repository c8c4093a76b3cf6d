//! Rotation of the sealing key: no sealed value is lost, and none stays sealed with the old key.

use blackbox::{
    EVENTS, Expect, Finished, Receiver, Visitor, World, local_receivers, mailed_links, offer_line, run,
    run_unread,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::{Answer, ServerOptions, TestServer, sealing_key};

use crate::admin::audit;
use crate::exit_codes::{interrupted, started};
use crate::metrics::value_at;
use crate::{PROGRAM, mails_to, run_alone};

const KEYS: &str = "SELLER_API__KEYS__SEALING";
/// Every column with sealed values.
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
async fn admin(world: &World, keys: &str, command: &str) -> Finished {
    let environment = [("DATABASE_URL", world.database.url()), (KEYS, keys)];
    let words: Vec<_> = ["admin", "keys"].into_iter().chain(command.split(' ')).collect();
    run(PROGRAM, &words, &environment).await
}

/// A server with these keys, over a world's database.
async fn serving(world: &World, keys: &str) -> TestServer {
    let options = ServerOptions::new(PROGRAM).set(KEYS, keys);
    TestServer::listen(&options, world.database.url()).await
}

/// Two keys, and a world in which the first one has sealed everything.
async fn sealed_world() -> (String, String, World, Sealed) {
    let (old, new) = (sealing_key(), sealing_key());
    let world = World::with(PROGRAM, |options| local_receivers(options).set(KEYS, &old)).await;
    let sealed = Sealed::by(&world).await;
    (old, new, world, sealed)
}

/// How many values of each column a key has sealed, by `admin keys status`, and the key's role among `keys`.
async fn sealed_by(world: &World, keys: &str, key: &str) -> (Vec<u64>, String) {
    let told = admin(world, keys, "status --json").await.success().stdout;
    let lines = told
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let lines: Vec<_> = lines.filter(|line| line["key"] == id(key)).collect();
    let columns = lines.iter().map(|line| line["column"].as_str().unwrap());
    assert!(columns.eq(COLUMNS), "{told}");
    let values = lines.iter().map(|line| line["values"].as_u64().unwrap());
    (values.collect(), lines[0]["state"].as_str().unwrap().to_owned())
}

/// One sealed value of every kind, and the means to check it.
struct Sealed {
    token: String,
    body: Value,
    made: Answer,
    /// The next page of a list, and of the journal.
    next: [String; 2],
    member: Visitor,
    once: String,
    trader: blackbox::Trader,
    receiver: Receiver,
}

impl Sealed {
    async fn by(world: &World) -> Self {
        let (own, receiver) = (world.integration().await, Receiver::start().await);
        let body = json!({"url": receiver.url, "events": EVENTS});
        let request = world.subscribing(&own.token, &body);
        let made = request.header("idempotency-key", "once").send().await.expect(201);
        let lines: Vec<_> = (1..=3).map(|n| offer_line(n, json!({}))).collect();
        world.import(&own.seller, lines.join("\n")).await.expect(200);
        let page = world.read(&own.token, "/v1/offers?limit=1").await;
        let events = world.read(&own.token, "/v1/events").await;
        let next = |page: &Value, name: &str| page[name].as_str().expect("a cursor").to_owned();
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
            next: [
                format!("/v1/offers?limit=1&after={}", next(&page, "next")),
                format!("/v1/events?after={}", next(&events, "cursor")),
            ],
            member,
            once,
            receiver,
        }
    }

    /// Asserts that every sealed value in the database still works.
    async fn is_whole(&self, world: &World) {
        let request = world.subscribing(&self.token, &self.body);
        let again = request.header("idempotency-key", "once").send().await.expect(201);
        assert_eq!(again.header("idempotent-replayed"), Some("true"));
        assert_eq!(again.bytes, self.made.bytes, "secret and all");
        self.delivers(world).await;
    }

    /// Asserts that deliveries are still signed correctly.
    async fn delivers(&self, world: &World) {
        let secret = self.made.json()["secret"].as_str().unwrap().to_owned();
        let before = self.receiver.count();
        world.paid_order(&self.trader).await;
        for delivery in &self.receiver.has(before + 2).await[before..] {
            delivery.is_signed_by(&secret).await;
        }
    }

    async fn next_pages(&self, world: &World) -> [Answer; 2] {
        let [offers, events] = &self.next;
        let get = async |path: &str| world.get(&self.token, path).await;
        [get(offers).await, get(events).await]
    }
}

#[tokio::test]
async fn a_key_is_replaced_and_nothing_sealed_is_lost() {
    let (old, new, mut world, sealed) = sealed_world().await;
    let both = format!("{new},{old}");
    let (counts, state) = sealed_by(&world, &old, &old).await;
    assert_eq!(state, "seals");
    assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
    assert_eq!(counts[0], 1);

    world.restart(|options| options.set(KEYS, &both)).await;
    sealed.is_whole(&world).await;
    for page in sealed.next_pages(&world).await {
        page.expect(200);
    }
    let found = sealed_by(&world, &both, &old).await;
    assert_eq!(found, (counts.clone(), "opens".to_owned()));
    assert_eq!(sealed_by(&world, &both, &new).await.1, "seals");

    admin(&world, &both, "reseal --dry-run").await.success();
    let unchanged = sealed_by(&world, &both, &old).await.0;
    assert_eq!(unchanged, counts, "nothing was written");
    let about = format!("audit list --about {}", id(&new));
    let unknown = crate::admin::admin(&world, &about).await.ended(3);
    assert!(unknown.stderr.contains(id(&new)), "{}", unknown.stderr);
    let told = admin(&world, &both, "reseal").await.success().stdout;
    let noted = audit(&world, &format!("--about {}", id(&new))).await;
    assert_eq!(noted.len(), 1, "{noted:?}");
    assert_eq!(noted[0]["action"], "keys.resealing_begun");
    assert!(noted[0]["os_user"].is_string(), "{noted:?}");
    assert!(told.contains("subscriptions.secret: 1 sealed anew"), "{told}");
    // Other sealed values expire by themselves.
    let left = sealed_by(&world, &both, &old).await.0;
    assert_eq!(left, [&[0], &counts[1..]].concat());
    assert_eq!(sealed_by(&world, &both, &new).await.0[0], 1);
    let told = admin(&world, &both, "reseal --json").await.success().stdout;
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["column"], json!(COLUMNS[0]));
    assert_eq!((&told["resealed"], &told["key"]), (&json!(0), &json!(id(&new))));
    let told = admin(&world, &both, "reseal").await.success().stdout;
    assert!(told.contains("subscriptions.secret: 0 sealed anew"), "{told}");

    let mails = TempDir::new().unwrap();
    let mailing = |options: ServerOptions| mails_to(options.set(KEYS, &both), mails.path());
    world.restart(mailing).await;
    let mut member = world.visitor();
    member.cookies.clone_from(&sealed.member.cookies);
    let shown = member.open(&sealed.once).await.expect(200);
    world.get(&shown.text_of("secret"), "/v1/me").await.expect(200);
    let invitation = async || mailed_links(mails.path()).pop();
    let invitation = blackbox::eventually("the invitation", invitation).await;
    assert!(invitation.starts_with("/panel/invitation/"), "{invitation}");
    world.visitor().open(&invitation).await.expect(200);

    // Without the old key, webhooks still work; nothing else that it sealed does.
    world.restart(|options| options.set(KEYS, &new)).await;
    sealed.delivers(&world).await;
    for page in sealed.next_pages(&world).await {
        page.invalid("after");
    }
}

/// A different key with the same id.
fn forged(key: &str) -> String {
    format!("{}:{}", id(key), sealing_key().split_once(':').unwrap().1)
}

/// Asserts that resealing fails with this output.
async fn is_refused(world: &World, keys: &str, told: &str) {
    for command in ["reseal", "reseal --dry-run"] {
        let refused = admin(world, keys, command).await.failure();
        assert!(refused.stderr.contains(told), "{}", refused.output());
    }
}

#[tokio::test]
async fn values_under_a_missing_key_are_reported_and_kept() {
    let (old, new, world, _sealed) = sealed_world().await;
    let both = format!("{new},{old}");
    let before = sealed_by(&world, &old, &old).await.0;

    // The key is missing, which does not stop the server.
    let missing = (before.clone(), "missing".to_owned());
    assert_eq!(sealed_by(&world, &new, &old).await, missing);
    let told = format!("do not open under the key \"{}\", which is not in", id(&old));
    is_refused(&world, &new, &told).await;
    let environment = [("DATABASE_URL", world.database.url()), (KEYS, &new)];
    let unread = run_unread(PROGRAM, &["admin", "keys", "reseal"], &environment)
        .await
        .ended(1);
    assert!(unread.stderr.contains(&told), "{}", unread.stderr);
    let server = serving(&world, &new).await;
    server.ready().await;
    let named = |log: &str| log.contains("not in `keys.sealing`") && log.contains(id(&old));
    server.log_with(named).await;
    let missing = value_at(&server.backoffice_url, "sealing_keys_missing").await;
    assert!((missing - 1.0).abs() < f64::EPSILON, "{missing}");
    let server = serving(&world, &both).await;
    server.ready().await;
    let log = server.log_with(|log| log.contains("ready")).await;
    assert!(!named(&log), "no warning with both keys: {log}");
    let without = admin(&world, "", "status").await.failure();
    assert!(without.stderr.contains("keys.sealing"), "{}", without.output());

    // A different key has its id: nothing can be opened with it.
    let wrong = forged(&old);
    let is_wrong = (before.clone(), "wrong".to_owned());
    let environment = [("DATABASE_URL", world.database.url()), (KEYS, &wrong)];
    let told = run_alone("serve", &environment).await.failure().output();
    assert!(told.contains("under its id") && told.contains(id(&old)), "{told}");
    assert_eq!(sealed_by(&world, &wrong, &old).await, is_wrong);
    is_refused(&world, &wrong, &format!("under its id \"{}\"", id(&old))).await;
    // Behind a right key it seals nothing, and it is reported.
    let behind = format!("{new},{wrong}");
    let server = serving(&world, &behind).await;
    server.ready().await;
    let named =
        |log: &str| log.contains("do not open what is stored under their ids") && log.contains(id(&old));
    server.log_with(named).await;
    assert_eq!(sealed_by(&world, &behind, &old).await, is_wrong);
    is_refused(&world, &behind, "though it is in").await;
    assert_eq!(sealed_by(&world, &old, &old).await, (before, "seals".to_owned()));

    // One changed value does not count as a different key.
    let changed = "update subscriptions set secret = \
        set_byte(secret, length(secret) - 1, 255 - get_byte(secret, length(secret) - 1))";
    world.execute(changed).await;
    serving(&world, &old).await.ready().await;
    is_refused(&world, &both, "though it is in").await;
    let (counts, state) = sealed_by(&world, &both, &old).await;
    assert_eq!((counts[0], state.as_str()), (1, "opens"));
}

#[tokio::test]
async fn resealing_waits_for_row_locks_and_can_be_repeated_after_an_interruption() {
    let (old, new, world, _sealed) = sealed_world().await;
    let both = format!("{new},{old}");
    let before = sealed_by(&world, &both, &old).await.0;
    let row = "select from subscriptions for update";
    let held = world.open_transaction(row).await;
    let environment = [("DATABASE_URL", world.database.url()), (KEYS, both.as_str())];
    let resealing = started(&["admin", "keys", "reseal"], &environment);
    let begun = "select count(*) from audit_log where action = 'keys.resealing_begun'";
    world.until_count("sealing anew begins", begun, &[], 1).await;
    interrupted(resealing).await;
    let refused = admin(&world, &both, "reseal").await.failure();
    let told = refused.stderr.contains("1 values were locked or changed");
    assert!(told, "{}", refused.output());
    let waited = async {
        world.waiters(1).await;
        held.end("rollback").await;
    };
    let (finished, ()) = tokio::join!(admin(&world, &both, "reseal"), waited);
    finished.success();
    let after = sealed_by(&world, &both, &old).await.0;
    assert!(
        after[0] == 0 && after[1..] == before[1..],
        "{before:?}, {after:?}"
    );
}
