//! `migrate` may be repeated, and may run concurrently.

use blackbox::{
    EVENTS, Expect, Finished, TRADE_EVENTS, World, eventually, items, line, order_body, parcel, run, text,
};
use serde_json::{Value, json};
use testkit::{Client, ServerOptions, TestDatabase, TestServer};

use crate::{PROGRAM, run_over};

async fn migrate(environment: &[(&str, &str)]) -> Finished {
    run(PROGRAM, &["migrate"], environment).await
}

#[tokio::test]
async fn several_at_once_and_one_more_are_harmless() {
    let database = TestDatabase::empty().await;
    let environment = [("DATABASE_URL", database.url())];
    let dry = run(PROGRAM, &["migrate", "--dry-run", "--json"], &environment).await;
    let first = r#"{"locks":"none","migration":"0001_foundation","rows":{}}"#;
    assert_eq!(dry.success().stdout.lines().next(), Some(first));
    let (one, two) = tokio::join!(migrate(&environment), migrate(&environment));
    for finished in [one, two, migrate(&environment).await] {
        finished.success();
    }
    let client = database.connect().await;
    let twice = "select version from __diesel_schema_migrations group by version having count(*) > 1";
    assert!(client.query(twice, &[]).await.unwrap().is_empty());
    // A run that ended just before it stored the version.
    let lost = "delete from __diesel_schema_migrations where version in ('0018', '0024')";
    assert_eq!(client.execute(lost, &[]).await.unwrap(), 2);
    migrate(&environment).await.success();
    TestServer::start(&ServerOptions::new(PROGRAM), &database).await;
}

#[tokio::test]
async fn what_an_older_program_would_misread_is_unknown_until_the_schema_is_finished() {
    let world = World::start(PROGRAM).await;
    let trader = world.trader().await;
    let offer = world.any_offer(&trader.seller, json!({})).await;
    let order = world.paid(&[line(&trader.seller, &offer, 1)], json!({})).await;
    let made = world.shipped(&trader.token, &order.id, &parcel("AAAA1")).await;
    let shipment = text(&made, "id");
    let correct = async |number: &str| {
        let body = json!({"tracking_number": number});
        let request = world.correcting(&trader.token, &order.id, &shipment, &body);
        request.send().await
    };
    // A new database is finished.
    correct("BBBB2").await.expect(200);
    let journal = async || world.read(&trader.token, "/v1/events").await;
    assert_eq!(items(&journal().await).len(), 3);
    // As an upgrade leaves it.
    world.execute("delete from instance where key = 'journal'").await;
    let upgraded = "update schema_facts set oldest_binary = '0.1.0' where oldest_binary = '1.1.0'";
    let client = world.database.connect().await;
    assert_eq!(client.execute(upgraded, &[]).await.unwrap(), 1);
    let answered = async |number: &str, status| {
        let answer = correct(number).await;
        (answer.status == status).then_some(answer)
    };
    let missing = eventually("the schema is not finished", async || {
        answered("BBBB2", 404).await
    });
    missing.await.refused(404, "not_found");
    // An older program's erasure would leave them.
    let lines = [line(&trader.seller, &offer, 1)];
    let personal = order_body(&lines, json!({}));
    world.place(&personal).await.invalid("delivery_point invoice");
    let mut known = personal.clone();
    for field in ["delivery_point", "invoice"] {
        known.as_object_mut().unwrap().remove(field);
    }
    world.place(&known).await.expect(201);
    let answer = world.get(&trader.token, "/v1/events").await;
    answer.refused(404, "not_found");
    let hooks = world.integration().await.token;
    let hook = world.subscription(&hooks, "https://1.1.1.1/", TRADE_EVENTS).await;
    let rotation = world.at(
        "POST",
        &format!("/v1/webhooks/{}/secret-rotation", text(&hook, "id")),
    );
    rotation.bearer(&hooks).send().await.refused(404, "not_found");
    let subscribe = async || world.subscribe_to(&hooks, "https://1.1.1.1/", &EVENTS).await;
    subscribe().await.invalid("events[6]");
    let listed = world.read(&hooks, "/v1/webhooks").await;
    assert_eq!(listed["available_events"], json!(TRADE_EVENTS));
    let environment = [
        ("DATABASE_URL", world.database.url()),
        TestDatabase::layout_variable(),
    ];
    let migrate = async |words: &[&str]| {
        let words = [&["migrate"][..], words].concat();
        run(PROGRAM, &words, &environment).await
    };
    let reminded = migrate(&[]).await.success().stderr;
    assert!(reminded.contains("seller-api migrate --finish"), "{reminded}");
    let dry = migrate(&["--finish", "--dry-run", "--json"]).await.success();
    let dry: Value = dry.stdout.parse().unwrap();
    assert_eq!(dry, json!({"finished": false, "already": false}));
    for is_new in [true, false] {
        let said = migrate(&["--finish", "--json"]).await.success().stdout;
        assert_eq!(
            said.trim(),
            json!({"finished": true, "already": !is_new}).to_string()
        );
    }
    eventually("the schema is finished", async || answered("CCCC3", 200).await).await;
    // The journal begins then: a program of the previous release wrote nothing into it.
    assert_eq!(journal().await["items"], json!([]));
    world.paid_order(&trader).await;
    assert_eq!(items(&journal().await).len(), 2);
    world.place(&personal).await.expect(201);
    subscribe().await.expect(201);
    // Also to a process that has just begun to listen.
    let restarted = blackbox::listen(&ServerOptions::new(PROGRAM), world.database.url()).await;
    let events = Client::new().get(&format!("{}/v1/events", restarted.base_url));
    events.bearer(&trader.token).send().await.expect(200);
    let done = migrate(&[]).await.success();
    assert!(!done.stderr.contains("--finish"), "{}", done.stderr);
    // Before the migrations, there is nothing to finish.
    let empty = TestDatabase::empty().await;
    let early = run_over(empty.url(), "migrate --finish").await;
    assert!(early.ended(4).stderr.contains("run `seller-api migrate`"));
}

#[tokio::test]
async fn the_direct_url_is_taken_before_the_other_and_no_password_is_printed() {
    let database = TestDatabase::empty().await;
    let elsewhere = (
        "DATABASE_URL",
        "postgres://nobody:hunter2-hunter2@127.0.0.1:1/nothing",
    );
    let direct = ("SELLER_API__DATABASE__DIRECT_URL", database.url());
    migrate(&[elsewhere, direct]).await.success();
    for command in [&["migrate"][..], &["admin", "operator-tokens", "list"]] {
        let refused = run(PROGRAM, command, &[elsewhere]).await.ended(4);
        assert!(!refused.stderr.trim().is_empty() && !refused.output().contains("hunter2"));
    }
    for (variable, key) in [
        ("DATABASE_URL", "`database.url`"),
        (direct.0, "`database.direct_url`"),
    ] {
        let refused = migrate(&[(variable, "mysql://db/x")]).await.ended(1);
        let told = &refused.stderr;
        assert!(told.contains(key) && told.contains(variable), "{told}");
    }
}

#[tokio::test]
async fn tables_in_another_schema_than_the_first_are_not_created_again() {
    let database = TestDatabase::create().await;
    let client = database.connect().await;
    client.batch_execute("create schema other").await.unwrap();
    let url = format!("{}?options=-c%20search_path%3Dother,public", database.url());
    for command in ["migrate --dry-run", "migrate"] {
        let refused = run_over(&url, command).await.ended(4).stderr;
        assert!(refused.contains("SET search_path = public"), "{refused}");
    }
    let created = "select from pg_tables where schemaname = 'other'";
    assert!(client.query(created, &[]).await.unwrap().is_empty());
}

#[tokio::test]
async fn another_programs_migrations_elsewhere_in_the_search_path_are_not_taken_for_ours() {
    let database = TestDatabase::empty().await;
    let others = "create table __diesel_schema_migrations (version text);
        insert into __diesel_schema_migrations values ('0001');
        create schema own";
    database.connect().await.batch_execute(others).await.unwrap();
    let url = format!("{}?options=-c%20search_path%3Down,public", database.url());
    let dry = run_over(&url, "migrate --dry-run").await.success().stdout;
    assert!(dry.contains("0001_foundation"), "{dry}");
    run_over(&url, "migrate").await.success();
}

#[tokio::test]
async fn a_database_that_takes_no_writes_is_refused_as_one_that_is_away() {
    for database in [TestDatabase::empty().await, TestDatabase::create().await] {
        let only_reads = "options=-c%20default_transaction_read_only%3Don";
        let url = format!("{}?{only_reads}", database.url());
        let refused = migrate(&[("DATABASE_URL", &url)]).await.ended(4);
        assert!(refused.stderr.contains("takes no writes"), "{}", refused.stderr);
    }
}
