//! Mail servers that refuse, are slow or cannot be found: no mail is lost, sent twice or delayed by another.

use std::{collections::BTreeSet, time::Duration};

use blackbox::{MachineNames, MailServer, World, line, parcel, run_unread, until};
use chrono::TimeDelta;
use serde_json::json;
use testkit::SmtpAction::{After, Reply, Silence};

use crate::admin::{admin, admin_json, audit};
use crate::name_servers::FAULTS;
use crate::{PROGRAM, metrics, set, stop, take_server};

/// The delay after the first failure.
const WAIT: TimeDelta = TimeDelta::seconds(61);

/// Matches a mail that waits for its second attempt.
const PUT_OFF: &str = "fence is null and attempts = 1 and due_at > api_now() + interval '50 s'";
const GIVEN_UP: &str = "dead_at is not null and attempts = 1";

/// Ships an order with a mail to this address. Returns the order's number and id.
async fn shipped(world: &World, address: &str) -> (String, String) {
    let trader = world.trader().await;
    let offer = world.any_offer(&trader.seller, json!({})).await;
    let buyer = json!({"buyer": {"name": "Ewa Żak", "email": address, "phone": "+48 600 100 200"}});
    let order = world.paid(&[line(&trader.seller, &offer, 1)], buyer).await;
    let made = world.ship(&trader.token, &order.id, &parcel("MAIL-1")).await;
    assert_eq!(made.expect(201).json()["buyer_notified"], true);
    (order.number, order.id)
}

async fn is_recorded(world: &World, order: &str, where_: &str) {
    let statement = format!("select count(*) from mails where order_id::text = $1 and {where_}");
    world.until_count(where_, &statement, &[&order], 1).await;
}

#[tokio::test]
async fn what_a_server_refuses_for_good_is_given_up_and_holds_up_no_other() {
    let server = MailServer::start().await;
    let world = World::with(PROGRAM, |options| server.given_to(options)).await;
    let clock = world.database.control_clock().await;
    server.refuses("gone@buyer.example", "550 5.1.1 <gone@buyer.example> is unknown");
    server.refuses("gone@shop.example", "550 5.1.1 <gone@shop.example> is unknown");
    let (gone, gone_id) = shipped(&world, "gone@buyer.example").await;
    let (here, here_id) = shipped(&world, "here@buyer.example").await;
    is_recorded(&world, &gone_id, GIVEN_UP).await;
    is_recorded(&world, &here_id, "sent_at is not null and attempts = 1").await;
    let invited = world.registered(json!({"email": "gone@shop.example"})).await.id;
    let is_told = "select count(*) from account_mails where dead_at is not null and seller_id::text = $1";
    world.until_count("the invitation", is_told, &[&invited], 1).await;
    server.is_well();
    server.fails("CONTENT", Reply("554 5.7.1 it looks like spam"));
    let (spam, spam_id) = shipped(&world, "here@buyer.example").await;
    is_recorded(&world, &spam_id, GIVEN_UP).await;
    server.is_well();

    // Mails that were given up are not tried again.
    clock.advance(TimeDelta::days(2)).await;
    let (last, last_id) = shipped(&world, "here@buyer.example").await;
    is_recorded(&world, &last_id, "sent_at is not null").await;
    let taken = [&gone, &here, &spam, &last].map(|number| server.taken(number).len());
    assert_eq!(taken, [0, 1, 0, 1]);
    let metrics = metrics(&world).await;
    let given_up = "mail_outcomes_total{about=\"shipment\",outcome=\"given_up\"} 2";
    assert!(metrics.lines().any(|line| line == given_up), "{metrics}");
    let is_named = |line: &str| {
        let words = [
            "a mail was given up",
            "\"kind\":\"invitation\"",
            "550 5.1.1",
            &invited,
        ];
        words.iter().all(|word| line.contains(word))
    };
    let log = world.server.log_with(|log| log.lines().any(is_named)).await;
    assert!(log.contains("550 5.1.1") && log.contains("554 5.7.1"), "{log}");
    assert!(log.contains("the mail server is "), "{log}");
    assert!(!log.contains("buyer.example"), "the log has a buyer's address");

    // An operator finds them with their orders, and has them sent again, beside one that there is not, also if nobody
    // reads which.
    let listed = admin_json(&world, "mails list").await;
    let ids: Vec<_> = listed.iter().map(|mail| &mail["order_id"]).collect();
    assert_eq!(ids, [&json!(spam_id), &json!(gone_id)]);
    let [spam_mail, gone_mail] = [0, 1].map(|n| listed[n]["id"].as_str().unwrap());
    let words = ["admin", "mails", "send-again", &gone_id, gone_mail, spam_mail];
    let environment = [("DATABASE_URL", world.database.url())];
    let partly = run_unread(PROGRAM, &words, &environment).await.ended(3);
    assert!(partly.stderr.contains(&gone_id), "{}", partly.stderr);
    is_recorded(&world, &spam_id, "sent_at is not null and attempts = 1").await;
    assert_eq!(server.taken(&spam).len(), 1);
    admin(&world, &format!("mails send-again {spam_mail}"))
        .await
        .ended(3);
    let entry = audit(&world, &format!("--about {spam_id}")).await.remove(0);
    assert_eq!(entry["action"], "mail.repeated");
    assert!(
        entry["os_user"].as_str().is_some_and(|user| !user.is_empty()),
        "{entry}"
    );
}

#[tokio::test]
async fn a_mail_server_whose_name_fails_is_asked_later() {
    const NAME: &str = "localhost";
    let server = MailServer::start().await;
    let std::net::IpAddr::V4(address) = server.address.ip() else {
        panic!("{}", server.address);
    };
    let Some(machine) = MachineNames::start(&[]).await else {
        return;
    };
    let world = World::with(PROGRAM, |options| {
        machine
            .given_to(server.given_to(options))
            .set("SELLER_API__MAIL__HOST", NAME)
            .set("SELLER_API__MAIL__TIMEOUT", "5s")
    })
    .await;
    let clock = world.database.control_clock().await;
    for fail in FAULTS {
        fail(&machine.server, NAME);
        let (number, id) = shipped(&world, "ewa@buyer.example").await;
        is_recorded(&world, &id, PUT_OFF).await;
        assert!(server.taken(&number).is_empty());
        machine.server.knows(NAME, &[address]);
        clock.advance(WAIT).await;
        is_recorded(&world, &id, "sent_at is not null and attempts = 2").await;
        assert_eq!(server.taken(&number).len(), 1);
    }
    let log = world.server.log();
    assert!(log.contains("a mail cannot be sent now and is retried"));
    assert!(log.contains("mails can be sent again"));
    assert!(!log.contains("buyer.example"), "the log has a buyer's address");
}

/// A relay that takes eight seconds a mail, for sixty mails: here it and the mail's time are six times as
/// fast or more.
#[tokio::test]
async fn a_slow_mail_server_gets_each_mail_once_and_no_attempt_is_lost() {
    const MAILS: usize = 60;
    let server = MailServer::start().await;
    server.fails("CONTENT", After(Duration::from_millis(150)));
    let settings = [("MAIL__TIMEOUT", "3s"), ("MAIL__MAX_CONNECTIONS", "2")];
    let world = World::with(PROGRAM, |options| set(server.given_to(options), &settings)).await;
    let queue = "insert into mails (id, order_id, order_number, recipient, carrier, tracking_number)
        select gen_random_uuid(), gen_random_uuid(), 'SLOW-' || n, 'ewa@buyer.example', 'dpd', 'SLOW-' || n
        from generate_series(1, 60) n";
    world.execute(queue).await;
    until("the mails", async || {
        let leased = "select count(*) from mails where fence is not null";
        assert!(
            world.count(leased, &[]).await <= 2,
            "more are leased than can be sent"
        );
        server.taken("").len() >= MAILS
    })
    .await;
    let sent = "select count(*) from mails where sent_at is not null and attempts = 1";
    world
        .until_count(sent, sent, &[], MAILS.try_into().unwrap())
        .await;
    let numbers: BTreeSet<_> = server
        .taken("")
        .iter()
        .filter_map(|mail| Some(mail.split_once("SLOW-")?.1.split_whitespace().next()?.to_owned()))
        .collect();
    assert_eq!((numbers.len(), server.heard("").len()), (MAILS, MAILS));
}

#[tokio::test]
async fn a_mail_whose_attempt_a_stop_ends_is_due_again_in_a_minute() {
    let server = MailServer::start().await;
    server.fails("CONTENT", Silence);
    let settings = [("SERVER__SHUTDOWN_TIMEOUT", "4s")];
    let mut world = World::with(PROGRAM, |options| set(server.given_to(options), &settings)).await;
    let (_, id) = shipped(&world, "ewa@buyer.example").await;
    is_recorded(&world, &id, "fence is not null and attempts = 1").await;
    stop(take_server(&mut world).await).await;
    is_recorded(&world, &id, PUT_OFF).await;
}
