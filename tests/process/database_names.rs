//! The database's host name cannot be resolved: at the start, and after connections are lost.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use blackbox::{Expect as _, Finished, MachineNames, World, listen, run, threads_of, until};
use serde_json::json;
use testkit::TestDatabase;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, UnixStream};

use crate::PROGRAM;
use crate::name_servers::{FAULTS, HERE};
use crate::outage::{all_in_time, connect_every_thread, holds_out, in_time};

const NAME: &str = "db.example";
const PASSWORD: &str = "neverToBeTold";

/// Makes the database, which listens only on a unix socket, reachable over TCP. Returns its URL.
async fn over_tcp(database: &TestDatabase) -> String {
    let config: tokio_postgres::Config = database.url().parse().unwrap();
    let Some(tokio_postgres::config::Host::Unix(folder)) = config.get_hosts().first() else {
        panic!("{}", database.url());
    };
    let socket: PathBuf = folder.join(".s.PGSQL.5432");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            let socket = socket.clone();
            tokio::spawn(async move {
                let mut far = UnixStream::connect(socket).await?;
                copy_bidirectional(&mut near, &mut far).await
            });
        }
    });
    let (user, name) = (config.get_user().unwrap(), config.get_dbname().unwrap());
    format!("postgres://{user}:{PASSWORD}@{NAME}:{port}/{name}?sslmode=disable")
}

/// Runs a command over the database at `url`, with the machine's names.
async fn run_there(machine: &MachineNames, url: &str, command: &[&str]) -> Finished {
    let words = machine.words();
    let (program, before) = words.split_first().unwrap();
    let arguments = [before, &[PROGRAM], command].concat();
    run(program, &arguments, &[("DATABASE_URL", url)]).await
}

#[tokio::test]
async fn a_database_whose_name_fails_is_waited_for_and_survived() {
    let Some(machine) = MachineNames::start(&[]).await else {
        return;
    };
    let mut world = World::with(PROGRAM, |options| options).await;
    let (seller, token) = world.reader().await;
    world.offer(&seller, 1, json!({})).await;
    let url = over_tcp(&world.database).await;
    let options = machine.given_to(world.options.clone());
    let operator_token = world.server.operator_token.clone();
    for fail in FAULTS {
        fail(&machine.server, NAME);
        let server = listen(&options, &url).await;
        server.not_ready().await;
        // However the name fails, and however late that shows, the host is named.
        let log = server.log_with(|log| log.contains("not ready: waiting")).await;
        let line = log.lines().find(|line| line.contains("not ready: waiting"));
        assert!(line.is_some_and(|line| line.contains(NAME)), "{log}");
        assert!(!log.contains(PASSWORD), "a password is logged");
        machine.server.knows(NAME, HERE);
        server.ready().await;
        world.server = server;
        world.server.operator_token.clone_from(&operator_token);
        world.get(&token, "/v1/offers").await.expect(200);
    }

    // Open connections need no name resolution.
    connect_every_thread(&world, &token).await;
    machine.server.is_silent_about(NAME);
    for _ in 0..20 {
        let read = world.at("GET", "/v1/offers").bearer(&token);
        in_time(read).await.expect(200);
    }
    let before = threads_of(world.server.id());
    let admin = world.database.connect().await;
    let others = "select count(pg_terminate_backend(pid)) from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid()";
    admin.query(others, &[]).await.unwrap();
    holds_out(&world, &token, &seller.id).await;
    // Each name resolution blocks a thread for ten seconds. The number of such threads is limited, however
    // many requests come.
    for _ in 0..2 {
        let crowd = (0..100).map(|_| world.at("GET", "/v1/offers").bearer(&token));
        for answer in all_in_time(&world, crowd).await {
            answer.refused(500, "internal_error");
        }
    }
    let more = threads_of(world.server.id()).saturating_sub(before);
    assert!(more <= 64, "{more} threads more");
    // A process that waits for name resolution can be stopped.
    let another = listen(&options, &url).await;
    another.not_ready().await;
    another.terminate();
    let ended = tokio::time::timeout(Duration::from_secs(8), another.exit_code()).await;
    assert_eq!(ended.expect("it ends"), Some(0));

    machine.server.knows(NAME, HERE);
    world.server.ready().await;
    until("a read", async || {
        world.get(&token, "/v1/offers").await.status == 200
    })
    .await;
}

#[tokio::test]
async fn a_host_whose_name_fails_is_passed_by_for_the_next() {
    const OTHER: &str = "standby.example";
    let Some(machine) = MachineNames::start(&[(NAME, HERE)]).await else {
        return;
    };
    let world = World::with(PROGRAM, |options| options).await;
    let (_, token) = world.reader().await;
    let url = over_tcp(&world.database).await;
    let url = url.replacen(NAME, &format!("{OTHER}:1,{NAME}"), 1);
    for fail in FAULTS {
        fail(&machine.server, OTHER);
        let server = listen(&machine.given_to(world.options.clone()), &url).await;
        server.ready().await;
        for _ in 0..5 {
            let read = world.client.get(&format!("{}/v1/offers", server.base_url));
            in_time(read.bearer(&token)).await.expect(200);
        }
    }
    // The last one does not answer, which leaves time for the other.
    run_there(&machine, &url, &["migrate"]).await.success();
}

#[tokio::test]
async fn commands_say_which_name_they_cannot_find() {
    let Some(machine) = MachineNames::start(&[]).await else {
        return;
    };
    let database = TestDatabase::create().await;
    let url = over_tcp(&database).await;
    for fail in FAULTS {
        fail(&machine.server, NAME);
        for command in [["migrate"].as_slice(), &["admin", "audit", "list"]] {
            let begun = Instant::now();
            let refused = run_there(&machine, &url, command).await.ended(4);
            // Commands do not wait for as long as the system's resolver does.
            let took = begun.elapsed();
            assert!(took < Duration::from_secs(8), "{command:?}: {took:?}");
            assert!(refused.stderr.contains(NAME), "{}", refused.output());
            assert!(!refused.output().contains(PASSWORD), "a password is printed");
        }
    }
    machine.server.knows(NAME, HERE);
    run_there(&machine, &url, &["migrate"]).await.success();
}
