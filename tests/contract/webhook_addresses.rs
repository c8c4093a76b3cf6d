//! Addresses that no subscription is made to, in all the ways in which they can be written (contract: Address rules).

use std::net::Ipv4Addr;

use blackbox::{EVENTS, Expect, NameServer, Receiver, eventually, line};
use serde_json::{Value, json};

use crate::{PROGRAM, World};

/// Each of them leads, or may lead, somewhere that is not the public internet, or is no address at all.
const REFUSED: [&str; 86] = [
    // IPv4 as it is usually written.
    "https://127.0.0.1/",
    "https://127.255.255.254/",
    "https://0.0.0.0/",
    "https://0.1.2.3/",
    "https://10.0.0.1/",
    "https://10.255.255.255/",
    "https://100.64.0.1/",
    "https://169.254.169.254/latest/meta-data/",
    "https://172.16.0.1/",
    "https://172.31.255.255/",
    "https://192.0.0.1/",
    "https://192.0.2.1/",
    "https://192.88.99.1/",
    "https://192.168.1.1/",
    "https://198.18.0.1/",
    "https://198.51.100.7/",
    "https://203.0.113.7/",
    "https://224.0.0.1/",
    "https://239.255.255.255/",
    "https://240.0.0.1/",
    "https://255.255.255.255/",
    "https://168.63.129.16/",
    // IPv4 as inet_aton reads it.
    "https://2130706433/",
    "https://017700000001/",
    "https://0x7f000001/",
    "https://0x7f.0.0.1/",
    "https://0177.0.0.1/",
    "https://127.1/",
    "https://127.0.1/",
    "https://0/",
    "https://0x0/",
    "https://012.0.0.1/",
    "https://192.168.257/",
    "https://0177.0x0.0.1/",
    "https://10.1/",
    "https://0xa.1/",
    "https://2852039166/",
    "https://0xa9fea9fe/",
    "https://0251.0376.0251.0376/",
    "https://3232235777/",
    "https://0300.0250.0.1/",
    "https://127%2e0%2e0%2e1/",
    "https://127.0.0.%31/",
    "https://127.0.0.1./",
    "https://%31%32%37.0.0.1/",
    "https://１２７.0.0.1/",
    "https://127。0。0。1/",
    // IPv6.
    "https://[::]/",
    "https://[::1]/",
    "https://[0:0:0:0:0:0:0:1]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[::ffff:7f00:1]/",
    "https://[::ffff:8.8.8.8]/",
    "https://[::127.0.0.1]/",
    "https://[::ffff:169.254.169.254]/",
    "https://[0:0:0:0:0:ffff:a00:1]/",
    "https://[2002:a9fe:a9fe::]/",
    "https://[64:ff9b::a9fe:a9fe]/",
    "https://[2001:0:a00:1::]/",
    "https://[ff05::2]/",
    "https://[64:ff9b::7f00:1]/",
    "https://[64:ff9b::8.8.8.8]/",
    "https://[64:ff9b:1::1]/",
    "https://[2002:7f00:1::]/",
    "https://[2001:0:7f00:1::]/",
    "https://[2001:db8::1]/",
    "https://[fe80::1]/",
    "https://[fe80::1%25eth0]/",
    "https://[fec0::1]/",
    "https://[fc00::1]/",
    "https://[fd00:ec2::254]/",
    "https://[ff02::1]/",
    "https://[100::1]/",
    "https://[5f00::1]/",
    // Names.
    "https://localhost/",
    "https://LOCALHOST./",
    "https://a.localhost/",
    "https://private.example/",
    "https://mixed.example/",
    "https://absent.example/",
    "https://empty.example/",
    // What is no address that a program and a person would read alike.
    "https://1.1.1.1\\@127.0.0.1/",
    "https://1.1.1.1@127.0.0.1/",
    "https:/1.1.1.1/",
    "https:1.1.1.1",
    "https://1.1.1.1:99999/",
];

#[tokio::test]
async fn only_the_public_internet_is_subscribed() {
    let (public, private) = (Ipv4Addr::new(1, 1, 1, 1), Ipv4Addr::new(10, 1, 2, 3));
    let names = NameServer::start(&[
        ("public.example", &[public, Ipv4Addr::new(8, 8, 8, 8)]),
        ("xn--kaw-kpa.example", &[public]),
        ("private.example", &[private]),
        ("mixed.example", &[public, private]),
        ("empty.example", &[]),
        ("denied.example", &[Ipv4Addr::new(9, 9, 9, 9)]),
    ])
    .await;
    let world = World::with(PROGRAM, |options| {
        options
            .set("SELLER_API__WEBHOOKS__NAME_SERVERS", names.address)
            .set("SELLER_API__WEBHOOKS__DENY_NETWORKS", "9.9.9.0/24")
    })
    .await;
    let own = world.integration().await;
    for url in REFUSED {
        let answer = world.subscribe_to(&own.token, url, &EVENTS).await;
        assert_eq!(answer.status, 400, "{url}: {answer:?}");
        answer.invalid(&["url"]);
    }
    let message = async |host: &str| -> Value {
        let answer = world
            .subscribe_to(&own.token, &format!("https://{host}/"), &EVENTS)
            .await;
        answer.invalid(&["url"]);
        answer.json()["errors"][0]["message"].clone()
    };
    let told = message("private.example").await;
    for host in ["absent.example", "mixed.example", "denied.example", "9.9.9.9"] {
        assert_eq!(message(host).await, told, "which names exist inside is not told");
    }
    assert_eq!(
        world.get(&own.token, "/v1/webhooks").await.json()["items"],
        serde_json::json!([])
    );
    for host in [
        "public.example",
        "PUBLIC.example.",
        "xn--kaw-kpa.example:8443",
        "[2606:4700::1111]",
        "1.0.0.1",
        // What an address is written as makes it no worse.
        "16843009",
        "0x01010101",
    ] {
        let url = format!("https://{host}/hooks");
        let answer = world.subscribe_to(&own.token, &url, &EVENTS).await;
        assert_eq!(answer.status, 201, "{url}: {answer:?}");
        assert_eq!(answer.json()["url"], url);
    }
}

#[tokio::test]
async fn a_name_that_points_elsewhere_after_the_check_gets_no_connection() {
    let public = Ipv4Addr::new(1, 1, 1, 1);
    let names = NameServer::start(&[("turning.example", &[public]), ("mixing.example", &[public])]).await;
    let world = World::with(PROGRAM, |options| {
        options.set("SELLER_API__WEBHOOKS__NAME_SERVERS", names.address)
    })
    .await;
    let own = world.integration().await;
    let inside = Receiver::start().await;
    let (_, port) = inside.url.trim_end_matches("/hooks").rsplit_once(':').unwrap();
    let mut hooks = Vec::new();
    for name in ["turning.example", "mixing.example"] {
        let url = format!("https://{name}:{port}/hooks");
        let made = world
            .subscribe_to(&own.token, &url, &EVENTS)
            .await
            .expect(201)
            .json();
        hooks.push(made["id"].as_str().unwrap().to_owned());
    }
    names.knows("turning.example", &[Ipv4Addr::LOCALHOST]);
    names.knows("mixing.example", &[public, Ipv4Addr::LOCALHOST]);
    let offer = world.any_offer(&own.seller, json!({})).await;
    world.unpaid(&[line(&own.seller, &offer, 1)], json!({})).await;
    for hook in &hooks {
        let delivery = eventually("the end of the attempt", async || {
            let delivery = world.delivery(&own.token, hook).await;
            (delivery["attempt"] == 1).then_some(delivery)
        })
        .await;
        assert_eq!(delivery["response_status"], Value::Null);
        assert!(delivery["next_retry_at"].is_string(), "{delivery}");
        let refused = "select count(*) from deliveries where subscription_id::text = $1 and failure = 'address_refused'";
        assert_eq!(world.count(refused, hook).await, 1, "{delivery}");
    }
    assert_eq!(inside.connections(), 0);
}
