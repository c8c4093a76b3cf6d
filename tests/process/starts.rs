//! `serve` starts with the database in any state, and reports what it waits for.

use std::net::TcpListener;

use blackbox::{Expect, until};
use testkit::{Client, ServerOptions, TestDatabase, TestServer, sealing_key};

use crate::{PROGRAM, run_alone, run_over};

async fn health(server: &TestServer) -> u16 {
    let url = format!("{}/healthz", server.backoffice_url);
    Client::new().get(&url).send().await.status
}

#[tokio::test]
async fn without_a_schema_it_waits_and_goes_on_once_that_is_there() {
    let database = TestDatabase::empty().await;
    let server = blackbox::listen(&ServerOptions::new(PROGRAM), database.url()).await;
    server.not_ready().await;
    assert_eq!(health(&server).await, 200);
    let get = async |base: &str, path: &str, kind: &str| {
        let request = Client::new().get(&format!("{base}{path}"));
        let request = request.bearer(&format!("ps_{kind}_{}", "A".repeat(64)));
        request.send().await
    };
    let form = "grant_type=client_credentials&client_id=x&client_secret=y";
    let token = Client::new().post(&format!("{}/oauth/token", server.base_url));
    let token = token.form(form).send().await;
    token.oauth_error(500, "server_error");
    let early = get(&server.base_url, "/v1/me", "pt").await;
    assert_eq!(early.code(), "internal_error");
    for early in [token, early, get(&server.backoffice_url, "/sellers", "op").await] {
        assert_eq!(early.status, 500);
        early.must("retry-after");
    }
    let id = blackbox::offer_id(1);
    for command in [
        "admin operator-tokens create early",
        &format!("admin operator-tokens revoke {id}"),
        &format!("import offers - --seller {id}"),
    ] {
        let refused = run_over(database.url(), command).await.ended(4);
        let stderr = refused.stderr.trim();
        let says_how = stderr.contains("run `seller-api migrate`");
        assert!(says_how && stderr.lines().count() == 1, "{stderr}");
    }
    run_over(database.url(), "migrate").await.success();
    server.ready().await;
    assert_eq!(get(&server.base_url, "/v1/me", "pt").await.code(), "unauthorized");
    server.log_with(|log| log.contains("seller-api migrate")).await;
}

/// Waits until a running server is not ready for a reason with these words: a check that takes too long has
/// another one, and until the cause is found, an open connection can make it ready once more.
pub(crate) async fn refuses_with(server: &TestServer, words: &[&str]) {
    let url = format!("{}/readyz", server.backoffice_url);
    until(&format!("the reason {words:?}"), async || {
        let answer = Client::new().get(&url).send().await;
        let reason = answer.json()["reason"].as_str().unwrap_or_default().to_owned();
        answer.status == 503 && words.iter().all(|word| reason.contains(word))
    })
    .await;
}

/// Asserts that commands fail, and that a server waits, with this reason.
async fn refused_everywhere(url: &str, commands: &[&str], words: &[&str]) {
    let has_all = |text: &str| words.iter().all(|word| text.contains(word));
    for command in commands {
        let refused = run_over(url, command).await.ended(4);
        assert!(has_all(&refused.stderr), "{command}: {}", refused.stderr);
    }
    let server = blackbox::listen(&ServerOptions::new(PROGRAM), url).await;
    server.not_ready().await;
    refuses_with(&server, words).await;
}

#[tokio::test]
async fn a_database_with_another_encoding_is_refused() {
    let database = TestDatabase::empty().await;
    let client = database.connect().await;
    let name = database.url().rsplit('/').next().unwrap();
    let name = name.split('?').next().unwrap();
    for encoding in ["LATIN1", "SQL_ASCII"] {
        let other = format!("{name}_{}", encoding.to_lowercase());
        let create = format!("create database {other} template template0 encoding '{encoding}' locale 'C'");
        client.batch_execute(&create).await.unwrap();
        let url = database.url().replace(name, &other);
        let commands = ["migrate", "admin audit list"];
        refused_everywhere(&url, &commands, &[encoding, "ENCODING 'UTF8'"]).await;
        let folder = tempfile::tempdir().unwrap();
        let sandbox = format!(
            "sandbox --port 0 --backoffice-port 0 --data-dir {}",
            folder.path().display()
        );
        let refused = run_over(&url, &sandbox).await.ended(4).stderr;
        assert!(refused.contains(encoding), "{refused}");
        let drop = format!("drop database {other} with (force)");
        client.batch_execute(&drop).await.unwrap();
    }
}

#[tokio::test]
async fn a_role_without_rights_or_login_gets_the_reason() {
    let (database, empty) = (TestDatabase::create().await, TestDatabase::empty().await);
    // A role that every server has and that owns nothing.
    let without_rights =
        |database: &TestDatabase| format!("{}?options=-c%20role%3Dpg_monitor", database.url());
    let commands = ["migrate", "admin audit list"];
    let reason = ["the role lacks rights", "ON TABLES TO pg_monitor"];
    refused_everywhere(&without_rights(&database), &commands, &reason).await;
    let direct = ("SELLER_API__DATABASE__DIRECT_URL", database.url());
    let warns = async |url: &str| {
        let urls = [("DATABASE_URL", url), direct];
        run_alone("migrate", &urls).await.success().stderr
    };
    let warned = warns(&without_rights(&database)).await;
    assert!(warned.contains(reason[1]), "{warned}");
    // In a schema of its own, which `migrate` has not reached yet, it is not sent to another's tables.
    let own = "create schema own authorization pg_monitor";
    database.connect().await.batch_execute(own).await.unwrap();
    let in_own = format!("{}%20-c%20search_path%3Down", without_rights(&database));
    let reason = ["none on the search_path: run `seller-api migrate`"];
    refused_everywhere(&in_own, &commands[1..], &reason).await;
    assert!(warns(&in_own).await.contains("search_path"));
    // A single right of a table, and the functions.
    let most = "grant select, insert, update, delete on all tables in schema public to pg_monitor;
        revoke insert on audit_log from pg_monitor; revoke execute on function api_now() from public";
    database.connect().await.batch_execute(most).await.unwrap();
    let reason = [
        "ON TABLES TO pg_monitor",
        "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO pg_monitor",
    ];
    let writes = ["admin operator-tokens create X"];
    refused_everywhere(&without_rights(&database), &writes, &reason).await;
    let warned = warns(&without_rights(&database)).await;
    assert!(reason.iter().all(|words| warned.contains(words)), "{warned}");
    let hidden = "revoke usage on schema public from public";
    database.connect().await.batch_execute(hidden).await.unwrap();
    let reason = [
        "the role lacks rights",
        "GRANT USAGE ON SCHEMA public TO pg_monitor",
    ];
    refused_everywhere(&without_rights(&database), &commands[1..], &reason).await;
    let refused = run_alone(
        "migrate",
        &[
            ("DATABASE_URL", database.url()),
            ("SELLER_API__DATABASE__DIRECT_URL", empty.url()),
        ],
    )
    .await;
    let refused = refused.ended(1).stderr;
    assert!(refused.contains("leads to another database"), "{refused}");
    assert!(
        empty
            .connect()
            .await
            .query("select from pg_tables where schemaname = 'public'", &[])
            .await
            .unwrap()
            .is_empty()
    );
    let refused = run_over(&without_rights(&empty), "migrate").await.ended(4).stderr;
    assert!(refused.contains("may not change the schema"), "{refused}");
    let unknown = database.url().replacen("//postgres@", "//nobody_at_all@", 1);
    assert_ne!(unknown, database.url());
    refused_everywhere(&unknown, &["admin audit list"], &["the role"]).await;
}

#[tokio::test]
async fn a_schema_that_needs_a_newer_program_is_refused() {
    let database = TestDatabase::create().await;
    let running = TestServer::start(&ServerOptions::new(PROGRAM), &database).await;
    let client = database.connect().await;
    let newer = "insert into __diesel_schema_migrations (version) values ('9999');
                 insert into schema_facts values ('9999', '999.1.2')";
    client.batch_execute(newer).await.unwrap();
    // `migrate` has nothing to do, but the schema is newer than the program.
    for command in [
        "serve",
        "migrate",
        "admin operator-tokens list",
        "admin operator-tokens create early",
    ] {
        let refused = run_alone(command, &[("DATABASE_URL", database.url())]).await;
        let refused = refused.failure().output();
        assert!(refused.contains("999.1.2"), "{command}: {refused}");
    }
    // Requests in progress may finish, but the server reports that it is not ready.
    running.not_ready().await;
    assert_eq!(health(&running).await, 200);
    let undone = "delete from __diesel_schema_migrations where version = '9999'";
    client.batch_execute(undone).await.unwrap();
    running.ready().await;
}

#[tokio::test]
async fn a_missing_or_wrong_setting_is_named_in_one_line() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (address, port) = (address.to_string(), address.port().to_string());
    let key = sealing_key();
    for (variable, value, named) in [
        ("DATABASE_URL", "", "DATABASE_URL"),
        ("SELLER_API__KEYS__SEALING", "", "keys.sealing"),
        ("DATABASE_URL", "mysql://localhost/x", "database.url"),
        ("SELLER_API__SERVER__BIND", &address, &port),
    ] {
        let environment = [("SELLER_API__KEYS__SEALING", &*key), (variable, value)];
        let refused = run_alone("serve", &environment).await.ended(1);
        assert!(refused.stderr.contains(named), "{named}: {}", refused.output());
        assert!(refused.stderr.trim().lines().count() <= 2, "{}", refused.stderr);
        assert!(!refused.output().contains(&key), "a key is printed");
    }
}
