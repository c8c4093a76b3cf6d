//! Issues, uses and misplaces every kind of secret, then searches every place that could leak one: the logs
//! of `serve`, a worker and the command line at the finest level, exported traces, metrics, the database with
//! its write-ahead log, and PostgreSQL's log.

use blackbox::{
    Collector, World, assert_no_secret, encoded, eventually, local_receivers, mailed_links, mails_to, run,
    run_fed,
};
use reqwest::Method;
use serde_json::json;
use testkit::{OwnPostgres, TestWorker, sealing_key};

use crate::at_rest::{busy, holds_none, search_is_effective, the};
use crate::{PROGRAM, set};

type Secrets = Vec<(&'static str, String)>;

const DATABASE_PASSWORD: &str = "the-databases-own-password-7Qx";
const CARRIER_KEY: &str = "a-carriers-own-api-key-5Zr";

/// Sends every secret in each place of a request where clients put it by mistake, to both listeners.
async fn misplace(world: &World, secrets: &Secrets) {
    let bases = [&world.server.base_url, &world.server.backoffice_url];
    for (_, secret) in secrets {
        let encoded = encoded(&[("x", secret)]);
        let encoded = encoded.trim_start_matches("x=");
        for base in bases {
            for path in [
                "/v1/offers",
                "/oauth/token",
                "/panel/sign-in",
                "/sellers",
                "/docs",
            ] {
                let url = format!("{base}{path}/{encoded}?access_token={encoded}&{encoded}=1");
                let request = world.client.request(Method::POST, &url).bearer(secret);
                let request = request
                    .header("cookie", &format!("seller_panel={secret}; {encoded}={encoded}"))
                    .header("idempotency-key", secret)
                    .header("traceparent", secret)
                    .header("user-agent", secret);
                request.json(&json!({secret.as_str(): secret})).send().await;
            }
            let form =
                format!("grant_type={encoded}&client_id={encoded}&client_secret={encoded}&token={encoded}");
            let token = world.client.post(&format!("{base}/oauth/token"));
            token.form(&form).send().await;
        }
    }
}

/// The write-ahead log since `from`.
async fn written_ahead(world: &World, from: &str) -> String {
    let client = world.database.connect().await;
    let ranges = "with begin as (select * from pg_walfile_name_offset($1::text::pg_lsn)), \
        finish as (select * from pg_walfile_name_offset(pg_current_wal_insert_lsn())) \
        select f.name, case when f.name = begin.file_name then begin.file_offset else 0 end::bigint, \
            case when f.name = finish.file_name then finish.file_offset else f.size end::bigint \
        from pg_ls_waldir() f, begin, finish \
        where f.name between begin.file_name and finish.file_name order by f.name";
    let mut bytes = Vec::new();
    for row in client.query(ranges, &[&from]).await.unwrap() {
        let (name, begin, end): (String, i64, i64) = (row.get(0), row.get(1), row.get(2));
        let read = "select pg_read_binary_file('pg_wal/' || $1::text, $2::bigint, $3::bigint)";
        let length = (end - begin).max(1);
        let file = client.query_one(read, &[&name, &begin, &length]).await.unwrap();
        bytes.extend(file.get::<_, Vec<u8>>(0));
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Opens the links of mails and answers an invitation.
async fn open(world: &World, mailed: &[String], secrets: &mut Secrets) {
    let mut browser = world.visitor();
    for link in mailed {
        let page = browser.page(link).await;
        let secret = link.rsplit_once('/').unwrap().1.to_owned();
        if link.starts_with("/panel/invitation/") {
            let password = "an invited one's password";
            browser.submit(&page.form(link).with("password", password)).await;
            secrets.push((password, password.to_owned()));
        }
        secrets.push(("a mailed link", secret));
    }
}

/// Runs commands, which print a secret only if that is their purpose. Returns their whole output except a new
/// token.
async fn commanded(url: &str, keys: &str, secrets: &mut Secrets) -> String {
    let environment = [
        ("DATABASE_URL", url),
        ("SELLER_API__KEYS__SEALING", keys),
        ("SELLER_API__CARRIERS__DHL__API_KEY", CARRIER_KEY),
        ("SELLER_API__LOG__LEVEL", "trace"),
    ];
    let mut output = String::new();
    for arguments in [
        ["config"].as_slice(),
        &["migrate"],
        &["admin", "audit", "list"],
        &["admin", "operator-tokens", "list"],
        &["admin", "webhooks", "pending"],
        &["admin", "keys", "status"],
        &["admin", "keys", "reseal"],
    ] {
        output += &run(PROGRAM, arguments, &environment).await.success().output();
    }
    let revoke = ["admin", "tokens", "revoke", "--stdin"];
    let personal = the("a personal token", secrets);
    output += &run_fed(PROGRAM, &revoke, &environment, personal).await.output();
    let create = ["admin", "operator-tokens", "create", "printed"];
    let printed = run(PROGRAM, &create, &environment).await.success();
    let mut words = printed.stdout.split_whitespace();
    let operator = words.find(|word| word.starts_with("ps_op_"));
    secrets.push(("a token that a command printed", operator.unwrap().to_owned()));
    output += &printed.stderr;
    // Errors about a missing database do not contain its password.
    let away = url.replacen("%2F", "%2Fnowhere%2F", 1);
    let away = [
        ("DATABASE_URL", away.as_str()),
        ("SELLER_API__LOG__LEVEL", "trace"),
    ];
    let failed = run(PROGRAM, &["admin", "audit", "list"], &away).await;
    output + &failed.failure().output()
}

#[tokio::test]
async fn no_secret_is_in_logs_metrics_traces_or_the_write_ahead_log() {
    let (keys, collector) = (sealing_key(), Collector::start().await);
    let folder = tempfile::tempdir().unwrap();
    let mail = folder.path().join("mail");
    // The shared server recycles its write-ahead log whenever a test creates a database.
    let postgres = OwnPostgres::start(|options| options.setting("wal_keep_size", "1GB")).await;
    let database = postgres.database();
    let password = format!("postgres:{DATABASE_PASSWORD}@");
    let url = database.url().replacen("postgres@", &password, 1);
    assert!(url.contains(DATABASE_PASSWORD), "{url}");
    let client = database.connect().await;
    let begin = "select pg_current_wal_insert_lsn()::text";
    let from: String = client.query_one(begin, &[]).await.unwrap().get(0);
    let settings = [
        ("KEYS__SEALING", keys.as_str()),
        // The test's own server is a single one in every topology.
        ("DATABASE__LAYOUT", "single"),
        ("LOG__LEVEL", "trace"),
        ("SERVER__WORKERS", "none"),
        ("TRACING__OTLP_ENDPOINT", &collector.url),
        ("TRACING__SAMPLE_RATIO", "1"),
        ("CARRIERS__DHL__API_KEY", CARRIER_KEY),
        ("OAUTH__TOKEN_LIMIT_PER_IP", "1000000"),
    ];
    let options = |options| {
        mails_to(local_receivers(options), &mail)
            .in_one_process()
            .set("DATABASE_URL", &url)
    };
    let world = World::over(PROGRAM, database, |fresh| set(options(fresh), &settings)).await;
    let mut secrets = busy(&world, &keys).await;
    let (worker, probes) = TestWorker::listening(&world.options, &world.database).await;
    let mailed = async || Some(mailed_links(&mail)).filter(|links| links.len() >= 2);
    let mailed = eventually("the mails", mailed).await;
    open(&world, &mailed, &mut secrets).await;
    secrets.extend([
        ("the database's password", DATABASE_PASSWORD.to_owned()),
        ("a carrier's key", CARRIER_KEY.to_owned()),
    ]);
    misplace(&world, &secrets).await;

    let output = commanded(&url, &keys, &mut secrets).await;

    let mut measured = String::new();
    for listener in [&world.server.backoffice_url, &probes] {
        let answer = world.client.get(&format!("{listener}/metrics")).send().await;
        measured += &String::from_utf8_lossy(&answer.expect(200).bytes);
    }
    let exported = eventually("traces", async || {
        let bodies = collector.requests().into_iter().map(|request| request.body);
        let bytes = bodies.collect::<Vec<_>>().concat();
        Some(String::from_utf8_lossy(&bytes).into_owned()).filter(|bytes| !bytes.is_empty())
    })
    .await;
    // Log lines arrive a little after the events.
    let has_all = |log: String| {
        let levels = ["\"TRACE\"", "\"DEBUG\""];
        levels.iter().any(|level| log.contains(level)).then_some(log)
    };
    let log = eventually("the log of serve", async || has_all(world.server.log())).await;
    let worker_log = eventually("the log of a worker", async || has_all(worker.log())).await;
    let dump = world.database.dump().await;
    search_is_effective(&world, &dump, &secrets).await;
    let of_postgres = std::fs::read(postgres.cluster().log_file()).unwrap();
    let of_postgres = String::from_utf8_lossy(&of_postgres).into_owned();
    assert!(of_postgres.contains("database system is ready"), "{of_postgres}");
    let ahead = written_ahead(&world, &from).await;
    assert!(
        ahead.contains("invited@shop.example"),
        "the search finds what is written"
    );
    for (place, text) in [
        ("the log of serve", &log),
        ("the log of a worker", &worker_log),
        ("the output of commands", &output),
        ("the metrics", &measured),
        ("the traces", &exported),
        ("the database", &dump),
        ("PostgreSQL's own log", &of_postgres),
        ("the write-ahead log", &ahead),
    ] {
        holds_none(place, text, &secrets);
    }
    for text in [&log, &worker_log, &output, &measured, &exported, &dump] {
        assert_no_secret(text);
    }
}
