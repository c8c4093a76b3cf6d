//! A PostgreSQL that has no connections left: what has one goes on, what has none is answered in time, and all is well again
//! by itself.

use blackbox::{World, listen};
use testkit::OwnPostgres;
use tokio_postgres::{Client, NoTls, error::SqlState};

use crate::{
    PROGRAM,
    ledger::{self, Ledger},
    outage::{connect_every_thread, holds_out, in_time},
    served_by,
};

/// An account that is no superuser, as the program has one in production: the places that are reserved are not for it.
const ACCOUNT: &str = "
    create role shop login;
    grant all on all tables in schema public to shop;
    grant all on all sequences in schema public to shop;
    alter default privileges in schema public grant all on tables to shop;";

/// The name of the test's own connections.
const MINE: &str = "taken";

async fn connect(url: &str) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) =
        tokio_postgres::connect(&format!("{url}?application_name={MINE}"), NoTls).await?;
    tokio::spawn(async move { drop(connection.await) });
    Ok(client)
}

/// Every place that the server has to give away.
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
    let mut world = World::over(PROGRAM, postgres.database(), |options| options).await;
    let options = world.options.clone();
    served_by(&mut world, &options, &url).await;
    let (seller, token) = world.reader().await;
    let mut ledger = Ledger::open(&world).await;
    assert_eq!(ledger.write(&world, 3).await, 3);

    connect_every_thread(&world, &token).await;

    // All other places are occupied: what the program has it keeps, and works with.
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

    // A start meanwhile waits.
    let another = listen(&world.options, &url).await;
    another.not_ready().await;

    // The program loses what it has, and gets nothing in its stead.
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
    // As soon as some places are free.
    drop(occupied);
    world.server.ready().await;
    another.ready().await;
    ledger.holds(&world).await;
    ledger::in_time(&world);
}
