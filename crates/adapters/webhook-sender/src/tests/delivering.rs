//! The bytes of requests, and the outcome of each answer.

use std::sync::Arc;

use tokio::{io::AsyncWriteExt as _, sync::Mutex};
use webhooks::{AddressPolicy, Outcome};

use super::{
    receiver::{OK, Receiver, read_request},
    support::{BODY, delivers, outcome, sender, settings},
};
use crate::{HttpSender, SenderSettings, SettingsError};

#[tokio::test]
async fn a_request_is_exactly_that_of_the_contract() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let hearing = Arc::clone(&told);
    let receiver = Receiver::start(move |mut stream, _| {
        let hearing = Arc::clone(&hearing);
        async move {
            *hearing.lock().await = read_request(&mut stream).await.unwrap();
            stream.write_all(OK).await.unwrap();
        }
    })
    .await;
    let address = receiver.address;
    let target = format!("http://{address}/a%2Fb/~c;d?x=1&y=%00");
    delivers(&sender(), &target, 1).await;
    let request = String::from_utf8(told.lock().await.clone()).unwrap();
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let mut lines = head.lines().collect::<Vec<_>>();
    lines[1..].sort_unstable();
    // printf %s "$body" | openssl dgst -sha256 -hmac ps_wh_BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc
    let signature = "e11de9749e05f61e5b875aa658b72a010e89e6f4965c4e3717c41c0a65494fe8";
    let expected = [
        "POST /a%2Fb/~c;d?x=1&y=%00 HTTP/1.1".to_owned(),
        format!("content-length: {}", BODY.len()),
        "content-type: application/json".to_owned(),
        format!("host: {address}"),
        "user-agent: shop-webhooks/1.0 (+https://docs.example.com/webhooks)".to_owned(),
        "x-delivery-id: 00000000-0000-0000-0000-000000000007".to_owned(),
        "x-event: order.paid".to_owned(),
        format!("x-signature: sha256={signature}"),
    ];
    assert_eq!(lines, expected);
    assert_eq!(body.as_bytes(), BODY);
}

#[tokio::test]
async fn the_status_is_reported_unchanged() {
    for (answer, status) in [
        (OK, 200),
        (b"HTTP/1.1 204 \r\n\r\n".as_slice(), 204),
        (b"HTTP/1.0 202 Fine\r\n\r\nwhatever", 202),
        (b"HTTP/1.1 299 x\r\ncontent-length: 0\r\n\r\n", 299),
        (
            b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
            101,
        ),
        (b"HTTP/1.1 304 Not Modified\r\n\r\n", 304),
        (b"HTTP/1.1 410 Gone\r\ncontent-length: 0\r\n\r\n", 410),
        (b"HTTP/1.1 503 Later\r\ncontent-length: 0\r\n\r\n", 503),
        (b"HTTP/1.1 999 ?\r\ncontent-length: 0\r\n\r\n", 999),
        // Nothing is decompressed, so an invalid encoding does not matter.
        (
            b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 3\r\n\r\nzip",
            200,
        ),
    ] {
        let receiver = Receiver::answering(answer).await;
        assert_eq!(
            outcome(&sender(), &receiver.url()).await,
            Outcome::Answered(status)
        );
    }
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let elsewhere = Receiver::answering(OK).await;
    for status in [301, 302, 303, 307, 308] {
        let answer = format!(
            "HTTP/1.1 {status} Over there\r\nlocation: {}\r\ncontent-length: 0\r\n\r\n",
            elsewhere.url()
        );
        let receiver = Receiver::stalling_after(answer.into_bytes()).await;
        assert_eq!(
            outcome(&sender(), &receiver.url()).await,
            Outcome::Answered(status)
        );
    }
    assert_eq!(elsewhere.taken(), 0);
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let refused = |change: fn(&mut SenderSettings)| {
        let mut settings = settings(AddressPolicy::Public);
        change(&mut settings);
        HttpSender::new(&settings).err().unwrap()
    };
    let name = refused(|settings| settings.service_name = "a\r\nb".to_owned());
    assert!(matches!(name, SettingsError::UserAgent));
    let time = refused(|settings| settings.attempt_timeout = std::time::Duration::ZERO);
    assert!(matches!(time, SettingsError::NoTime));
    let roots = refused(|settings| settings.extra_roots = Some("no certificate".to_owned()));
    assert!(matches!(roots, SettingsError::Tls(_)));
}
