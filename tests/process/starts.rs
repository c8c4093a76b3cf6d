//! `serve` starts with the database in any state, and reports what it waits for.

use std::{
    net::TcpListener,
    time::{Duration, Instant},
};

use blackbox::{Expect, run};
use testkit::{Client, ServerOptions, TestDatabase, TestServer, sealing_key};

use crate::PROGRAM;

async fn probe(server: &TestServer, path: &str) -> u16 {
    Client::new()
        .get(&format!("{}{path}", server.backoffice_url))
        .send()
        .await
        .status
}

#[tokio::test]
async fn without_a_schema_it_waits_and_goes_on_once_that_is_there() {
    let database = TestDatabase::empty().await;
    let server = blackbox::listen(&ServerOptions::new(PROGRAM), database.url()).await;
    server.not_ready().await;
    assert_eq!(probe(&server, "/healthz").await, 200);
    let get = async |base: &str, path: &str, kind: &str| {
        let request = Client::new().get(&format!("{base}{path}"));
        request
            .bearer(&format!("ps_{kind}_{}", "A".repeat(64)))
            .send()
            .await
    };
    let form = "grant_type=client_credentials&client_id=x&client_secret=y";
    let token = Client::new()
        .post(&format!("{}/oauth/token", server.base_url))
        .form(form);
    let token = token.send().await;
    token.oauth_error(500, "server_error");
    let early = get(&server.base_url, "/v1/me", "pt").await;
    assert_eq!(early.code(), "internal_error");
    for early in [token, early, get(&server.backoffice_url, "/sellers", "op").await] {
        assert_eq!(early.status, 500);
        early.must("retry-after");
    }
    let (environment, id) = ([("DATABASE_URL", database.url())], blackbox::offer_id(1));
    for command in [
        &["admin", "operator-tokens", "create", "early"][..],
        &["admin", "operator-tokens", "revoke", &id],
        &["import", "offers", "-", "--seller", &id],
    ] {
        let refused = run(PROGRAM, command, &environment).await.ended(4);
        let stderr = refused.stderr.trim();
        assert!(
            stderr.contains("run `seller-api migrate`") && stderr.lines().count() == 1,
            "{stderr}"
        );
    }
    run(PROGRAM, &["migrate"], &environment).await.success();
    server.ready().await;
    assert_eq!(get(&server.base_url, "/v1/me", "pt").await.code(), "unauthorized");
    server.log_with(|log| log.contains("seller-api migrate")).await;
}

/// The reason for which a running server is not ready.
pub(crate) async fn reason(server: &TestServer) -> String {
    let answer = Client::new()
        .get(&format!("{}/readyz", server.backoffice_url))
        .send()
        .await;
    assert_eq!(answer.status, 503);
    answer.json()["reason"].as_str().unwrap_or_default().to_owned()
}

/// Asserts that commands fail, and that a server waits, with this reason.
async fn refused_everywhere(url: &str, commands: &[&[&str]], words: &[&str]) {
    for command in commands {
        let refused = run(PROGRAM, command, &[("DATABASE_URL", url)]).await.ended(4);
        for word in words {
            assert!(refused.stderr.contains(word), "{command:?}: {}", refused.stderr);
        }
    }
    let server = blackbox::listen(&ServerOptions::new(PROGRAM), url).await;
    server.not_ready().await;
    let reason = reason(&server).await;
    assert!(words.iter().all(|word| reason.contains(word)), "{reason}");
}

#[tokio::test]
async fn a_database_that_cannot_hold_every_name_is_refused() {
    let database = TestDatabase::empty().await;
    let client = database.connect().await;
    let name = database
        .url()
        .rsplit('/')
        .next()
        .unwrap()
        .split('?')
        .next()
        .unwrap();
    for encoding in ["LATIN1", "SQL_ASCII"] {
        let other = format!("{name}_{}", encoding.to_lowercase());
        let create = format!("create database {other} template template0 encoding '{encoding}' locale 'C'");
        client.batch_execute(&create).await.unwrap();
        let url = database.url().replace(name, &other);
        let commands: [&[&str]; 2] = [&["migrate"], &["admin", "audit", "list"]];
        refused_everywhere(&url, &commands, &[encoding, "ENCODING 'UTF8'"]).await;
        let drop = format!("drop database {other} with (force)");
        client.batch_execute(&drop).await.unwrap();
    }
}

#[tokio::test]
async fn a_role_without_rights_is_told_what_it_lacks() {
    let database = TestDatabase::create().await;
    // A role that every server has and that owns nothing.
    let url = |database: &TestDatabase| format!("{}?options=-c%20role%3Dpg_monitor", database.url());
    let commands: [&[&str]; 2] = [&["migrate"], &["admin", "audit", "list"]];
    refused_everywhere(&url(&database), &commands, &["the role may not read", "grant"]).await;
    let empty = TestDatabase::empty().await;
    let url = url(&empty);
    let refused = run(PROGRAM, &["migrate"], &[("DATABASE_URL", url.as_str())])
        .await
        .ended(4);
    assert!(
        refused.stderr.contains("may not change the schema"),
        "{}",
        refused.stderr
    );
}

#[tokio::test]
async fn a_role_that_is_not_let_in_is_told_why() {
    let database = TestDatabase::create().await;
    let url = database.url().replacen("//postgres@", "//nobody_at_all@", 1);
    assert_ne!(url, database.url());
    refused_everywhere(&url, &[&["admin", "audit", "list"]], &["the role"]).await;
}

#[tokio::test]
async fn without_a_database_it_waits_and_goes_on_once_that_is_there() {
    let database = TestDatabase::create().await;
    database.block_connections().await;
    let server = blackbox::listen(&ServerOptions::new(PROGRAM), database.url()).await;
    server.not_ready().await;
    assert_eq!(probe(&server, "/healthz").await, 200);
    database.allow_connections().await;
    server.ready().await;
}

#[tokio::test]
async fn on_a_migrated_database_it_is_ready_within_a_second() {
    let database = TestDatabase::create().await;
    let mut quickest = Duration::MAX;
    // Other tests share the machine, so the fastest start counts.
    for _ in 0..3 {
        let began = Instant::now();
        let server = blackbox::listen(&ServerOptions::new(PROGRAM), database.url()).await;
        server.ready().await;
        quickest = quickest.min(began.elapsed());
    }
    assert!(quickest <= Duration::from_secs(1), "{quickest:?}");
}

#[tokio::test]
async fn a_schema_for_newer_programs_alone_is_refused() {
    let database = TestDatabase::create().await;
    let running = TestServer::start(&ServerOptions::new(PROGRAM), &database).await;
    let client = database.connect().await;
    let newer = "insert into __diesel_schema_migrations (version) values ('9999');
                 insert into schema_facts values ('9999', '999.1.2')";
    client.batch_execute(newer).await.unwrap();
    let key = sealing_key();
    let environment = [
        ("DATABASE_URL", database.url()),
        ("SELLER_API__KEYS__SEALING", &key),
        ("SELLER_API__SERVER__BIND", "127.0.0.1:0"),
        ("SELLER_API__SERVER__BACKOFFICE_BIND", "127.0.0.1:0"),
    ];
    let refused = run(PROGRAM, &["serve"], &environment).await.failure();
    assert!(refused.output().contains("999.1.2"), "{}", refused.output());
    // There is nothing to migrate, but the schema is newer than the program.
    let refused = run(PROGRAM, &["migrate"], &environment).await.failure();
    assert!(refused.output().contains("999.1.2"), "{}", refused.output());
    for command in [
        ["admin", "operator-tokens", "list"].as_slice(),
        &["admin", "operator-tokens", "create", "early"],
    ] {
        let refused = run(PROGRAM, command, &environment).await.failure();
        assert!(
            refused.stderr.contains("999.1.2"),
            "{command:?}: {}",
            refused.output()
        );
    }
    // Requests in progress may finish, but the server reports that it is not ready.
    running.not_ready().await;
    assert_eq!(probe(&running, "/healthz").await, 200);
    let undone = "delete from __diesel_schema_migrations where version = '9999'";
    client.batch_execute(undone).await.unwrap();
    running.ready().await;
}

#[tokio::test]
async fn what_it_cannot_start_without_is_named_in_one_line() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let (address, port) = (address.to_string(), address.port().to_string());
    let (database, key) = ("postgres://nobody@127.0.0.1:1/nothing", sealing_key());
    let cases: [(&[(&str, &str)], &str); 4] = [
        (&[("SELLER_API__KEYS__SEALING", &key)], "DATABASE_URL"),
        (&[("DATABASE_URL", database)], "keys.sealing"),
        (
            &[
                ("DATABASE_URL", "mysql://localhost/x"),
                ("SELLER_API__KEYS__SEALING", &key),
            ],
            "database.url",
        ),
        (
            &[
                ("DATABASE_URL", database),
                ("SELLER_API__KEYS__SEALING", &key),
                ("SELLER_API__SERVER__BIND", &address),
            ],
            &port,
        ),
    ];
    for (given, named) in cases {
        let free = [
            ("SELLER_API__SERVER__BIND", "127.0.0.1:0"),
            ("SELLER_API__SERVER__BACKOFFICE_BIND", "127.0.0.1:0"),
        ];
        let refused = run(PROGRAM, &["serve"], &[&free, given].concat()).await.failure();
        assert!(refused.stderr.contains(named), "{named}: {}", refused.output());
        assert!(refused.stderr.trim().lines().count() <= 2, "{}", refused.stderr);
        assert!(!refused.output().contains(&key), "a key is printed");
    }
}
