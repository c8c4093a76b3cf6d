//! Executes the restore runbook. The real program works, an accident happens, the cluster is restored to an
//! instant before it, and the program continues there.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::Path;

use blackbox::{
    Expect as _, Hook, Integration, PersonalToken, Received, Receiver, Reply, World, entry, eventually,
    items, line, local_receivers, run, text, until,
};
use private_postgres::{Cluster, Options};
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::{Answer, ServerOptions, TestDatabase};

use crate::PROGRAM;
use crate::runbook::{Runbook, path_with};

const PAGE: &str = "backup.md";
const DATABASE: &str = "seller_api";

/// A cluster with WAL archiving as in the runbook.
struct ArchivedCluster {
    options: Options,
    cluster: Cluster,
    runbook: Runbook,
    backup: std::path::PathBuf,
    folder: TempDir,
}

impl ArchivedCluster {
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
        let cluster = start_cluster(options.clone()).await;
        let owner = fs::metadata(cluster.data_folder()).unwrap();
        let account = (owner.uid(), owner.gid());
        chown(&backup, Some(account.0), Some(account.1)).unwrap();
        let runbook = Runbook::read(PAGE, account, environment(&cluster, &backup));
        let admin = TestDatabase::at_url(&cluster.url("postgres")).connect().await;
        let create = format!("create database {DATABASE}");
        admin.batch_execute(&create).await.unwrap();
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
        World::over(PROGRAM, TestDatabase::at_url(&self.url()), settings).await
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
        let cluster = start_cluster(options.clone()).await;
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

pub(crate) async fn start_cluster(options: Options) -> Cluster {
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
        ("TEXTFILES", backup.display().to_string()),
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
    let patching = world.patching(token, offer, &json!({"stock": key.len()}));
    patching.header("idempotency-key", key).send().await.expect(200)
}

async fn page(world: &World, after: &str) -> Answer {
    let path = format!("/changes?limit=1000&after={after}");
    world.office_get(&path).await
}

/// The cursor after the first change, once the feed has it.
async fn end_of_feed(world: &World) -> String {
    eventually("the first change in the feed", async || {
        let page = world.office_read("/changes?limit=1000").await;
        let last = items(&page).last()?;
        (last["kind"] == "offer.stock_changed").then(|| text(&page, "next"))
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
    // A setting that the restore brings back, with a standby that is missing then. No server reads the file
    // before that.
    let waits_for = "alter system set synchronous_standby_names = 'ANY 1 (db2)'";
    let admin = world.database.connect().await;
    admin.batch_execute(waits_for).await.unwrap();
    runbook.step("pg_basebackup");
    runbook.step("pg_archivecleanup");
    let second = world.paid(&[line(seller, &offer, 1)], json!({})).await;
    all_arrived(world, &hook).await;
    let revoked_later = world.personal_token(seller, &["offers:read"]).await;
    receiver.answers(Reply::Status(500));
    let third = world.unpaid(&[line(seller, &offer, 1)], json!({})).await;
    let failed = "select count(*) from deliveries where subscription_id::text = $1 and due_at is not null and attempt > 0";
    world
        .until_count("a failed attempt", failed, &[&hook.id], 1)
        .await;
    let mut seen = Vec::new();
    let orders = [first, second, third].map(|order| format!("/v1/orders/{}", order.id));
    for path in orders.into_iter().chain([format!("/v1/offers/{offer}")]) {
        let answer = world.read(&token, &path).await;
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
    let lines = [line(&integration.seller, offer, 1)];
    let order = world.paid(&lines, json!({})).await;
    all_arrived(world, hook).await;
    let revoked = &before.revoked_later;
    world.revoke_personal(&integration.seller, revoked).await;
    world.get(&revoked.token, "/v1/offers").await.expect(401);
    let cursor = eventually("the change in the feed", async || {
        let page = page(world, &before.cursor).await.expect(200).json();
        (items(&page).len() == 1).then(|| text(&page, "next"))
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
async fn a_restore_to_an_instant_has_the_documented_effects() {
    let archived = ArchivedCluster::start().await;
    archived.runbook.step("mkdir");
    let url = archived.url();
    let environment = [("DATABASE_URL", url.as_str())];
    run(PROGRAM, &["migrate"], &environment).await.success();
    let settings =
        |options| local_receivers(options).set("SELLER_API__WEBHOOKS__RETRY_DELAYS", "5s,5s,5s,5s,5s");
    let world = archived.world(settings).await;
    let before = work_before(&world, &archived.runbook).await;
    let instant = archived.runbook.step("clock_timestamp");
    let after = work_after(&world, &before).await;
    let accident = world.database.connect().await;
    let truncate = "truncate seller_orders, offers cascade";
    accident.batch_execute(truncate).await.unwrap();
    let token = &before.integration.token;
    world.get(token, &before.seen[0].0).await.expect(404);

    let options = world.options.clone();
    drop((world, accident));
    archived.runbook.step("pg_switch_wal");
    let mut archived = archived.back_to(&instant).await;
    let sent_before = before.receiver.count();
    let mut world = archived.world(|_| options).await;

    for (path, seen) in &before.seen {
        assert_eq!(world.read(token, path).await, *seen, "{path}");
    }
    let later = format!("/v1/orders/{}", after.order);
    world.get(token, &later).await.expect(404);
    world.get(&after.token, "/v1/offers").await.expect(401);
    world.read(&before.revoked_later.token, "/v1/offers").await;

    let new = page(&world, &before.cursor).await.expect(200).json();
    assert_eq!(new["items"], json!([]));
    let refused_cursor = [entry("conflict", "after")];
    page(&world, &after.cursor).await.is_problem(409, &refused_cursor);

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
    page(&world, &after.cursor).await.is_problem(409, &refused_cursor);

    all_arrived(&world, &before.hook).await;
    let sent = before.receiver.received();
    let (first, again) = sent.split_at(sent_before);
    let ids: BTreeSet<_> = again.iter().map(Received::delivery).collect();
    assert_eq!(ids, BTreeSet::from([after.late.as_str()]));
    let is_late = |delivery: &&Received| delivery.delivery() == after.late;
    let known = first.iter().rfind(is_late).unwrap();
    assert!(again.iter().all(|delivery| delivery.body == known.body));

    // A dump beside the original, in the same cluster.
    archived.runbook.step("pg_dump");
    let admin = world.database.connect().await;
    admin.batch_execute("create database anew").await.unwrap();
    archived.runbook.set("NEW", "anew");
    archived.runbook.step("pg_restore");
    archived.runbook.is_done();
    let url = archived.cluster.url("anew");
    let environment = [("DATABASE_URL", url.as_str())];
    let anew = blackbox::listen(&world.options, &url).await;
    let original = std::mem::replace(&mut world.server, anew);
    world.server.operator_token.clone_from(&original.operator_token);
    world.server.not_ready().await;
    let refused = world.office_get("/readyz").await.expect(503).json();
    assert!(text(&refused, "reason").contains("adopt-database"), "{refused}");
    world.office_get("/changes").await.expect(500);
    world.get(token, &before.seen[0].0).await.expect(500);
    let adopt = ["admin", "adopt-database", "--restored", "--yes"];
    let list = ["admin", "audit", "list"];
    for (words, exit) in [(&list[..], 4), (&adopt[..3], 2), (&adopt, 0)] {
        run(PROGRAM, words, &environment).await.ended(exit);
    }
    world.server.ready().await;
    let answer = page(&world, &before.cursor).await;
    answer.is_problem(409, &refused_cursor);
    let asked = run(PROGRAM, &adopt[..3], &environment).await.ended(2);
    assert!(asked.output().contains("its rows are its own already"));
}

/// Of a command that PostgreSQL runs.
fn exit_code(command: &str) -> Option<i32> {
    let status = std::process::Command::new("sh").args(["-c", command]).status();
    status.unwrap().code()
}

#[test]
fn a_wal_file_is_archived_once_and_may_be_sent_again() {
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("backup");
    fs::create_dir_all(archive.join("wal")).unwrap();
    let settings = Runbook::settings(PAGE, "/srv/backup", archive.to_str().unwrap());
    let (_, command) = settings
        .iter()
        .find(|(name, _)| name == "archive_command")
        .unwrap();
    let file = folder.path().join("0001");
    let command = command
        .replace("%p", file.to_str().unwrap())
        .replace("%f", "0001");
    let archives = || exit_code(&command) == Some(0);
    fs::write(&file, "first").unwrap();
    assert!(archives(), "a new file");
    assert!(archives(), "the same file again, as after a crash");
    fs::write(&file, "other").unwrap();
    assert!(!archives(), "another file with the same name");
    let content = fs::read_to_string(archive.join("wal/0001")).unwrap();
    assert_eq!(content, "first");
    assert_eq!(fs::read_dir(archive.join("wal")).unwrap().count(), 1);
}

/// PostgreSQL opens for writes after a 1 and stops after a 255: an archive that cannot be read must not look
/// like the end of the WAL.
#[test]
fn only_a_missing_file_ends_the_recovery() {
    let folder = tempfile::tempdir().unwrap();
    let page = crate::text(PAGE);
    let command = page
        .lines()
        .find_map(|line| line.trim().strip_prefix("restore_command = '"));
    let command = command.unwrap().trim_end_matches('\'');
    let command = command.replace("$BACKUP", folder.path().to_str().unwrap());
    let restoring = |file: &str| {
        let restored = folder.path().join("restored");
        let command = command.replace("%f", file);
        exit_code(&command.replace("%p", restored.to_str().unwrap()))
    };
    assert_eq!(restoring("whole"), Some(255), "no archive");
    let archive = folder.path().join("wal");
    fs::create_dir_all(archive.join("unreadable")).unwrap();
    fs::write(archive.join("whole"), "WAL").unwrap();
    assert_eq!(restoring("missing"), Some(1));
    assert_eq!(restoring("unreadable"), Some(255));
    assert_eq!(restoring("whole"), Some(0));
}
