//! PostgreSQL has no free connections: open connections keep working, other requests are answered in time,
//! and everything recovers by itself.

use blackbox::{World, listen, until};
use testkit::{OwnPostgres, ServerOptions, TestServer};
use tokio_postgres::{Client, NoTls, error::SqlState};

use crate::ledger::Ledger;
use crate::outage::{connect_every_thread, holds_out, in_time};
use crate::starts::refuses_with;
use crate::{PROGRAM, ledger};

/// A role without superuser rights, as in production: reserved connections are not available to it.
const ACCOUNT: &str = "
    create role shop login;
    grant all on all tables in schema public to shop;
    grant all on all sequences in schema public to shop;
    alter default privileges in schema public grant all on tables to shop;";

/// The application name of the test's own connections.
const MINE: &str = "taken";

async fn connect(url: &str) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) =
        tokio_postgres::connect(&format!("{url}?application_name={MINE}"), NoTls).await?;
    tokio::spawn(async move { drop(connection.await) });
    Ok(client)
}

/// Takes all free connections of the server.
async fn take_the_rest(url: &str, into: &mut Vec<Client>) {
    loop {
        match connect(url).await {
            Ok(client) => into.push(client),
            Err(full) if full.code() == Some(&SqlState::TOO_MANY_CONNECTIONS) => return,
            Err(other) => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_server_without_free_connections_is_survived() {
    let postgres = OwnPostgres::start(|options| options.setting("max_connections", 30)).await;
    let admin = postgres.database().connect().await;
    admin.batch_execute(ACCOUNT).await.unwrap();
    let url = postgres.database().url().replace("//postgres@", "//shop@");
    // As many on a machine with one processor.
    let two_threads = |options: ServerOptions| options.set("SELLER_API__SERVER__THREADS", 2);
    let mut world = World::over(PROGRAM, postgres.database(), two_threads).await;
    let options = world.options.clone();
    world.served_by(&options, &url).await;
    let (seller, token) = world.reader().await;
    let mut ledger = Ledger::open(&world).await;
    assert_eq!(ledger.write(&world, 3).await, 3);

    connect_every_thread(&world, &token).await;

    // All other connections are taken: the program keeps its own and works with them.
    let mut occupied = Vec::new();
    take_the_rest(&url, &mut occupied).await;
    assert!(!occupied.is_empty());
    for _ in 0..5 {
        assert_eq!(ledger.write(&world, 1).await, 1);
    }
    let written = ledger.write(&world, 40).await;
    assert!(written > 0, "of many at once some find a connection");
    in_time(world.client.get(&world.url("/v1/offers")).bearer(&token))
        .await
        .expect(200);

    // A server that starts meanwhile waits.
    let another = listen(&world.options, &url).await;
    another.not_ready().await;
    refuses_with(&another, &["max_connections"]).await;

    // The program loses its connections and gets no new ones.
    admin
        .batch_execute("alter role shop connection limit 0")
        .await
        .unwrap();
    let others = "select count(pg_terminate_backend(pid)) from pg_stat_activity
        where usename = 'shop' and application_name <> $1";
    admin.query(others, &[&MINE]).await.unwrap();
    holds_out(&world, &token, &seller.id).await;
    let before = ledger.counts();
    assert_eq!(ledger.write(&world, 40).await, 0);
    assert_eq!(ledger.counts(), (before.0, before.1 + 40));
    another.not_ready().await;

    admin
        .batch_execute("alter role shop connection limit -1")
        .await
        .unwrap();
    // Recovery starts as soon as some connections are free.
    drop(occupied);
    world.server.ready().await;
    another.ready().await;
    ledger.holds(&world).await;
    ledger::in_time(&world);
}

/// As after a changed password: open connections work, and end one after another.
#[tokio::test]
async fn a_role_that_is_no_longer_let_in_is_noticed_before_the_last_connection_ends() {
    let postgres = OwnPostgres::start(|options| options).await;
    let admin = postgres.database().connect().await;
    admin.batch_execute(ACCOUNT).await.unwrap();
    let url = postgres.database().url().replace("//postgres@", "//shop@");
    let server = TestServer::listen(&ServerOptions::new(PROGRAM), &url).await;
    server.ready().await;
    admin.batch_execute("alter role shop nologin").await.unwrap();
    // An open connection may answer until the next try of a new one, so the answers may alternate before.
    until("the reason", async || {
        let url = format!("{}/readyz", server.backoffice_url);
        let answer = testkit::Client::new().get(&url).send().await;
        answer.status == 503
            && answer.json()["reason"]
                .to_string()
                .contains("does not let the role in")
    })
    .await;
    admin.batch_execute("alter role shop login").await.unwrap();
    server.ready().await;
}
