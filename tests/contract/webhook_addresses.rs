//! Addresses that subscriptions must not have, in all spellings (contract: Address rules).

use std::net::Ipv4Addr;

use blackbox::{EVENTS, Expect, NameServer, Receiver, text};
use serde_json::{Value, json};

use crate::world_with;

/// Each of these is, or may be, outside the public internet, or is not a valid address: hosts, and whole
/// URLs.
const REFUSED: [&str; 14] = [
    // IPv4 in the usual form.
    r"127.0.0.1 127.255.255.254 0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 172.16.0.1",
    r"172.31.255.255 192.0.0.1 192.0.2.1 192.88.99.1 192.168.1.1 198.18.0.1 198.51.100.7 203.0.113.7",
    r"224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 168.63.129.16",
    r"https://169.254.169.254/latest/meta-data/",
    // IPv4 in the forms that inet_aton accepts.
    r"2130706433 017700000001 0x7f000001 0x7f.0.0.1 0177.0.0.1 127.1 127.0.1 0 0x0 012.0.0.1 192.168.257",
    r"0177.0x0.0.1 10.1 0xa.1 2852039166 0xa9fea9fe 0251.0376.0251.0376 3232235777 0300.0250.0.1",
    r"127%2e0%2e0%2e1 127.0.0.%31 127.0.0.1. %31%32%37.0.0.1 １２７.0.0.1 127。0。0。1",
    // IPv6.
    r"[::] [::1] [0:0:0:0:0:0:0:1] [::ffff:127.0.0.1] [::ffff:7f00:1] [::ffff:8.8.8.8] [::127.0.0.1]",
    r"[::ffff:169.254.169.254] [0:0:0:0:0:ffff:a00:1] [2002:a9fe:a9fe::] [64:ff9b::a9fe:a9fe]",
    r"[2001:0:a00:1::] [ff05::2] [64:ff9b::7f00:1] [64:ff9b::8.8.8.8] [64:ff9b:1::1] [2002:7f00:1::]",
    r"[2001:0:7f00:1::] [2001:db8::1] [fe80::1] [fe80::1%25eth0] [fec0::1] [fc00::1] [fd00:ec2::254]",
    r"[ff02::1] [100::1] [5f00::1]",
    // Names.
    r"localhost LOCALHOST. a.localhost private.example mixed.example absent.example empty.example",
    // URLs that programs and people may read differently.
    r"1.1.1.1:99999 https://1.1.1.1\@127.0.0.1/ https://1.1.1.1@127.0.0.1/ https:/1.1.1.1/ https:1.1.1.1",
];

#[tokio::test]
async fn only_public_addresses_can_be_subscribed() {
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
    let names_at = names.address.to_string();
    let denied = ("WEBHOOKS__DENY_NETWORKS", "9.9.9.0/24");
    let world = world_with(&[("WEBHOOKS__NAME_SERVERS", &names_at), denied]).await;
    let own = world.integration().await;
    for host in REFUSED.join(" ").split(' ') {
        let whole = format!("https://{host}/");
        let url = if host.starts_with("https:") { host } else { &whole };
        let answer = world.subscribe_to(&own.token, url, &EVENTS).await;
        assert_eq!(answer.status, 400, "{url}: {answer:?}");
        answer.invalid("url");
    }
    // HTTPS only, whatever the host.
    for url in "http://public.example/ HTTP://public.example/ http://1.1.1.1/ http://public.example:443/ \
        ws://public.example/ ftp://public.example/ //public.example/ public.example"
        .split_whitespace()
    {
        let answer = world.subscribe_to(&own.token, url, &EVENTS).await;
        answer.expect(400).invalid("url");
    }
    let message = async |host: &str| -> Value {
        let url = format!("https://{host}/");
        let answer = world.subscribe_to(&own.token, &url, &EVENTS).await;
        answer.invalid("url");
        answer.json()["errors"][0]["message"].take()
    };
    let message_of_private = message("private.example").await;
    for host in ["absent.example", "mixed.example", "denied.example", "9.9.9.9"] {
        assert_eq!(
            message(host).await,
            message_of_private,
            "private names do not differ from unknown ones"
        );
    }
    assert_eq!(world.read(&own.token, "/v1/webhooks").await["items"], json!([]));
    // An unusual spelling of a public address is allowed.
    let fine = "public.example PUBLIC.example. xn--kaw-kpa.example:8443 [2606:4700::1111] 1.0.0.1 16843009 0x01010101";
    for host in fine.split(' ') {
        let url = format!("https://{host}/hooks");
        let answer = world.subscribe_to(&own.token, &url, &EVENTS).await;
        assert_eq!(answer.status, 201, "{url}: {answer:?}");
        assert_eq!(answer.json()["url"], url);
    }
}

#[tokio::test]
async fn a_name_that_resolves_to_a_private_address_later_gets_no_connection() {
    let public = Ipv4Addr::new(1, 1, 1, 1);
    let names = NameServer::start(&[("turning.example", &[public]), ("mixing.example", &[public])]).await;
    let world = world_with(&[("WEBHOOKS__NAME_SERVERS", &names.address.to_string())]).await;
    let own = world.integration().await;
    let inside = Receiver::start().await;
    let (_, port) = inside.url.trim_end_matches("/hooks").rsplit_once(':').unwrap();
    let mut hooks = Vec::new();
    for name in ["turning.example", "mixing.example"] {
        let url = format!("https://{name}:{port}/hooks");
        let made = world.subscription(&own.token, &url, &EVENTS).await;
        hooks.push(text(&made, "id"));
    }
    names.knows("turning.example", &[Ipv4Addr::LOCALHOST]);
    names.knows("mixing.example", &[public, Ipv4Addr::LOCALHOST]);
    world.any_order(&own.seller).await;
    for hook in &hooks {
        let delivery = world.attempted(&own.token, hook, 1).await;
        assert_eq!(delivery["response_status"], Value::Null);
        assert!(delivery["next_retry_at"].is_string(), "{delivery}");
        let refused = "select count(*) from deliveries where subscription_id::text = $1 and failure = 'address_refused'";
        assert_eq!(world.count(refused, &[&hook]).await, 1, "{delivery}");
    }
    assert_eq!(inside.connections(), 0);
}
