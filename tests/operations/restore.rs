//! Executes the restore runbook. The real program works, an accident happens, the cluster is restored to an instant before it, and the
//! program continues there.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown},
    path::Path,
};

use blackbox::{
    Expect as _, Hook, Integration, PersonalToken, Receiver, Reply, World, entry, eventually, line,
    local_receivers, run, until,
};
use private_postgres::{Cluster, Options};
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::{Answer, ServerOptions, TestDatabase};

use crate::{
    PROGRAM,
    runbook::{Runbook, path_with},
};

const PAGE: &str = "backup.md";
const DATABASE: &str = "seller_api";

/// A cluster with WAL archiving as in the runbook.
struct Stand {
    options: Options,
    cluster: Cluster,
    runbook: Runbook,
    backup: std::path::PathBuf,
    folder: TempDir,
}

impl Stand {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // PostgreSQL's account has to pass through this folder.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let backup = folder.path().join("backup");
        fs::create_dir(&backup).unwrap();
        let named = Runbook::settings(PAGE, "/srv/backup", &backup.display().to_string());
        let options = Options::new(folder.path().join("cluster"));
        let options = named
            .into_iter()
            .fold(options, |options, (name, value)| options.setting(name, value));
        let cluster = started(options.clone()).await;
        let owner = fs::metadata(cluster.data_folder()).unwrap();
        let account = (owner.uid(), owner.gid());
        chown(&backup, Some(account.0), Some(account.1)).unwrap();
        let runbook = Runbook::read(PAGE, account, environment(&cluster, &backup));
        TestDatabase::elsewhere(&cluster.url("postgres"))
            .connect()
            .await
            .batch_execute(&format!("create database {DATABASE}"))
            .await
            .unwrap();
        Self {
            options,
            cluster,
            runbook,
            backup,
            folder,
        }
    }

    fn url(&self) -> String {
        self.cluster.url(DATABASE)
    }

    async fn world(&self, settings: impl FnOnce(ServerOptions) -> ServerOptions) -> World {
        World::over(PROGRAM, TestDatabase::elsewhere(&self.url()), settings).await
    }

    /// Stops PostgreSQL, replaces it by a base backup with the runbook's commands, and starts it again.
    async fn back_to(self, instant: &str) -> Self {
        let Self {
            options,
            cluster,
            mut runbook,
            backup,
            folder,
        } = self;
        let stopping = move || cluster.stop();
        tokio::task::spawn_blocking(stopping).await.unwrap().unwrap();
        let mut bases = fs::read_dir(backup.join("base")).unwrap();
        let base = bases.next().unwrap().unwrap().file_name();
        runbook.set("RESTORE_TO", instant);
        runbook.set("BASE", base.to_str().unwrap());
        runbook.step("recovery.signal");
        let cluster = started(options.clone()).await;
        runbook.step("pg_is_in_recovery");
        Self {
            options,
            cluster,
            runbook,
            backup,
            folder,
        }
    }
}

async fn started(options: Options) -> Cluster {
    let starting = tokio::task::spawn_blocking(|| Cluster::start(options)).await;
    starting
        .unwrap()
        .unwrap_or_else(|error| panic!("PostgreSQL: {error}"))
}

fn environment(cluster: &Cluster, backup: &Path) -> Vec<(String, String)> {
    let connection = cluster.connection();
    let pairs = [
        ("PATH", path_with(cluster.binaries().folder().to_owned())),
        ("PGHOST", connection.socket_folder().display().to_string()),
        ("PGPORT", connection.port().to_string()),
        ("PGUSER", connection.user().to_owned()),
        ("PGDATABASE", DATABASE.to_owned()),
        ("PGDATA", cluster.data_folder().display().to_string()),
        ("BACKUP", backup.display().to_string()),
    ];
    pairs.map(|(name, value)| (name.to_owned(), value)).to_vec()
}

/// The changes before the instant, and their state at that time.
struct Before {
    integration: Integration,
    hook: Hook,
    receiver: Receiver,
    offer: String,
    keyed: Answer,
    /// The responses by path.
    seen: Vec<(String, Value)>,
    revoked_later: PersonalToken,
    cursor: String,
}

/// The changes after the instant.
struct After {
    order: String,
    token: String,
    cursor: String,
    /// The delivery that was waiting at the instant and arrived after it.
    late: String,
}

async fn change(world: &World, token: &str, offer: &str, key: &str) -> Answer {
    let stock = json!({"stock": key.len()});
    let patching = world
        .patching(token, offer, &stock)
        .header("idempotency-key", key);
    patching.send().await.expect(200)
}

async fn page(world: &World, after: &str) -> Answer {
    world
        .office_get(&format!("/changes?limit=1000&after={after}"))
        .await
}

/// The cursor after the first change, once the feed has it.
async fn end_of_feed(world: &World) -> String {
    eventually("the first change in the feed", async || {
        let page = world.office_get("/changes?limit=1000").await.expect(200).json();
        let told = page["items"]
            .as_array()
            .unwrap()
            .last()
            .is_some_and(|item| item["kind"] == "offer.stock_changed");
        told.then(|| page["next"].as_str().unwrap().to_owned())
    })
    .await
}

async fn all_arrived(world: &World, hook: &Hook) {
    until("the last delivery", async || world.waiting(&hook.id).await == 0).await;
}

async fn work_before(world: &World, runbook: &Runbook) -> Before {
    let integration = world.integration().await;
    let (seller, token) = (&integration.seller, integration.token.clone());
    let receiver = Receiver::start().await;
    let hook = world.hook(&token, &receiver).await;
    let offer = world.any_offer(seller, json!({})).await;
    let keyed = change(world, &token, &offer, "before").await;
    let first = world.paid(&[line(seller, &offer, 1)], json!({})).await;
    all_arrived(world, &hook).await;
    // A setting that the restore brings back, with a standby that is missing then. No server reads the file before that.
    let waits_for = "alter system set synchronous_standby_names = 'ANY 1 (db2)'";
    world
        .database
        .connect()
        .await
        .batch_execute(waits_for)
        .await
        .unwrap();
    runbook.step("pg_basebackup");
    runbook.step("pg_archivecleanup");
    let second = world.paid(&[line(seller, &offer, 1)], json!({})).await;
    all_arrived(world, &hook).await;
    let revoked_later = world.personal_token(seller, &["offers:read"]).await;
    receiver.answers(Reply::Status(500));
    let third = world.unpaid(&[line(seller, &offer, 1)], json!({})).await;
    let failed = "select count(*) from deliveries where subscription_id::text = $1 and due_at is not null and attempt > 0";
    until("a failed attempt", async || {
        world.count(failed, &hook.id).await == 1
    })
    .await;
    let mut seen = Vec::new();
    let orders = [first, second, third].map(|order| format!("/v1/orders/{}", order.id));
    for path in orders.into_iter().chain([format!("/v1/offers/{offer}")]) {
        let answer = world.get(&token, &path).await.expect(200).json();
        seen.push((path, answer));
    }
    Before {
        cursor: end_of_feed(world).await,
        revoked_later,
        integration,
        hook,
        receiver,
        offer,
        keyed,
        seen,
    }
}

async fn work_after(world: &World, before: &Before) -> After {
    let Before {
        integration,
        hook,
        receiver,
        offer,
        ..
    } = before;
    receiver.answers(Reply::Status(204));
    all_arrived(world, hook).await;
    let late = receiver.received().last().unwrap().delivery().to_owned();
    change(world, &integration.token, offer, "afterwards").await;
    let order = world
        .paid(&[line(&integration.seller, offer, 1)], json!({}))
        .await;
    all_arrived(world, hook).await;
    let tokens = format!("/sellers/{}/personal-tokens", integration.seller.id);
    let revoked = format!("{tokens}/{}", before.revoked_later.id);
    let gone = world.office(Method::DELETE, &revoked).send().await;
    assert!(gone.status < 300, "{gone:?}");
    world
        .get(&before.revoked_later.token, "/v1/offers")
        .await
        .expect(401);
    let cursor = eventually("the change in the feed", async || {
        let page = page(world, &before.cursor).await.expect(200).json();
        let told = page["items"].as_array().unwrap().len();
        (told == 1).then(|| page["next"].as_str().unwrap().to_owned())
    });
    After {
        order: order.id,
        token: world.token(&integration.application).await,
        cursor: cursor.await,
        late,
    }
}

/// Uses up transaction ids until those from before the restore have been assigned again.
async fn use_up_ids(world: &World, cursor: &str) {
    let gone = i64::from_str_radix(cursor.split('.').nth(1).unwrap(), 16).unwrap();
    let client = world.database.connect().await;
    loop {
        let next = "select pg_current_xact_id()::text::bigint";
        if client.query_one(next, &[]).await.unwrap().get::<_, i64>(0) > gone {
            return;
        }
    }
}

#[tokio::test]
async fn an_instant_is_gone_back_to_and_what_came_after_is_as_the_page_says() {
    let stand = Stand::start().await;
    stand.runbook.step("mkdir");
    let url = stand.url();
    run(PROGRAM, &["migrate"], &[("DATABASE_URL", &url)])
        .await
        .success();
    let settings =
        |options| local_receivers(options).set("SELLER_API__WEBHOOKS__RETRY_DELAYS", "5s,5s,5s,5s,5s");
    let world = stand.world(settings).await;
    let before = work_before(&world, &stand.runbook).await;
    let instant = stand.runbook.step("clock_timestamp");
    let after = work_after(&world, &before).await;
    let accident = world.database.connect().await;
    accident
        .batch_execute("truncate seller_orders, offers cascade")
        .await
        .unwrap();
    world
        .get(&before.integration.token, &before.seen[0].0)
        .await
        .expect(404);

    let options = world.options.clone();
    drop((world, accident));
    stand.runbook.step("pg_switch_wal");
    let stand = stand.back_to(&instant).await;
    stand.runbook.is_done();
    let sent_before = before.receiver.count();
    let world = stand.world(|_| options).await;

    let token = &before.integration.token;
    for (path, seen) in &before.seen {
        assert_eq!(world.get(token, path).await.expect(200).json(), *seen, "{path}");
    }
    world
        .get(token, &format!("/v1/orders/{}", after.order))
        .await
        .expect(404);
    world.get(&after.token, "/v1/offers").await.expect(401);
    world
        .get(&before.revoked_later.token, "/v1/offers")
        .await
        .expect(200);

    assert_eq!(
        page(&world, &before.cursor).await.expect(200).json()["items"],
        json!([])
    );
    let refused = [entry("conflict", "after")];
    page(&world, &after.cursor).await.is_problem(409, &refused);

    let replayed = change(&world, token, &before.offer, "before").await;
    assert_eq!(replayed.header("idempotent-replayed"), Some("true"));
    assert_eq!(replayed.bytes, before.keyed.bytes);
    let anew = change(&world, token, &before.offer, "afterwards").await;
    assert_eq!(anew.header("idempotent-replayed"), None);
    until("the change in the feed", async || {
        let page = page(&world, &before.cursor).await.expect(200).json();
        page["items"].as_array().unwrap().len() == 1
    })
    .await;
    use_up_ids(&world, &after.cursor).await;
    page(&world, &after.cursor).await.is_problem(409, &refused);

    all_arrived(&world, &before.hook).await;
    let sent = before.receiver.received();
    let (first, again) = sent.split_at(sent_before);
    let ids: BTreeSet<_> = again
        .iter()
        .map(|delivery| delivery.delivery().to_owned())
        .collect();
    assert_eq!(ids, BTreeSet::from([after.late.clone()]));
    let known = first
        .iter()
        .rfind(|delivery| delivery.delivery() == after.late)
        .unwrap();
    assert!(again.iter().all(|delivery| delivery.body == known.body));
}

#[test]
fn a_file_of_wal_is_archived_once_and_may_be_handed_over_again() {
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("backup");
    fs::create_dir_all(archive.join("wal")).unwrap();
    let settings = Runbook::settings(PAGE, "/srv/backup", archive.to_str().unwrap());
    let (_, command) = settings
        .iter()
        .find(|(name, _)| name == "archive_command")
        .unwrap();
    let file = folder.path().join("0001");
    // As PostgreSQL runs it.
    let command = command
        .replace("%p", file.to_str().unwrap())
        .replace("%f", "0001");
    let archives = || {
        std::process::Command::new("sh")
            .args(["-c", &command])
            .status()
            .unwrap()
            .success()
    };
    let kept = || fs::read_to_string(archive.join("wal/0001")).unwrap();
    fs::write(&file, "first").unwrap();
    assert!(archives(), "a new one");
    assert!(archives(), "the same again, as after a crash");
    fs::write(&file, "other").unwrap();
    assert!(!archives(), "another of that name");
    assert_eq!(kept(), "first");
    assert_eq!(fs::read_dir(archive.join("wal")).unwrap().count(), 1);
}
