//! Answers of webhook receivers: whatever the bytes, the attempt ends in time with a status or a failure.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use adapter_webhook_sender::{HttpSender, SenderSettings};
use tokio::runtime::Runtime;
use uuid::Uuid;
use webhooks::{
    AddressPolicy, AddressRules, Message, Outcome, Sent, WebhookEvent, WebhookSecret, WebhookSender as _,
    WebhookUrl, signature,
};

use crate::{always, in_proportion, is_printable};

const ATTEMPT_TIMEOUT: Duration = Duration::from_millis(500);
const BODY: &[u8] = br#"{"id":"x","event":"order.paid"}"#;

/// Reads the request, sends these bytes and closes.
fn answer(mut stream: TcpStream, bytes: &[u8]) -> std::io::Result<()> {
    stream.set_read_timeout(Some(ATTEMPT_TIMEOUT))?;
    stream.set_write_timeout(Some(ATTEMPT_TIMEOUT))?;
    let (mut request, mut part) = (Vec::new(), [0; 4096]);
    while !request.ends_with(BODY) {
        match stream.read(&mut part)? {
            0 => break,
            read => request.extend_from_slice(&part[..read]),
        }
    }
    stream.write_all(bytes)
}

#[test]
fn whatever_a_receiver_answers_ends_the_attempt() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let url = WebhookUrl::parse(url, AddressPolicy::Any).unwrap();
    let (answers, next) = mpsc::channel::<Vec<u8>>();
    thread::spawn(move || {
        for bytes in next {
            drop(answer(listener.accept().unwrap().0, &bytes));
        }
    });
    let rules = AddressRules {
        policy: AddressPolicy::Any,
        deny: Vec::new(),
    };
    let mut settings = SenderSettings::new("fuzz", "https://docs.example", rules);
    settings.attempt_timeout = ATTEMPT_TIMEOUT;
    settings.name_servers = vec!["127.0.0.1:9".parse().unwrap()];
    settings.kept_connections = 0;
    let runtime = Runtime::new().unwrap();
    let _within = runtime.enter();
    let sender = HttpSender::new(&settings).unwrap();
    let message = Message {
        application: Uuid::from_u128(1).into(),
        delivery: Uuid::from_u128(7).into(),
        event: WebhookEvent::OrderPaid,
        url,
        body: Arc::from(BODY),
        signature: signature(&WebhookSecret::from_random(&[7; 32]), BODY),
    };
    let attempt = |bytes: &[u8]| {
        answers.send(bytes.to_vec()).unwrap();
        let Sent::Attempted(attempted) = runtime.block_on(sender.send(&message)) else {
            panic!("nobody else is sending");
        };
        assert!(attempted.duration < ATTEMPT_TIMEOUT * 8, "{attempted:?}");
        match attempted.outcome {
            Outcome::Answered(status) => assert!((100..1000).contains(&status), "{status}"),
            Outcome::Failed(failure) => is_printable(&failure.to_string(), 0),
        }
    };
    let samples = [
        "HTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\nffffffffffffffff\r\n0\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 500 Oh\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1/\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n\0\u{1}",
        "HTTP/1.0 200\r\ncontent-encoding: gzip\r\n\r\nuntil the end",
        "HTTP/1.1 410 Gone\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nxx",
        "HTTP/2.0 099\r\n\r\n",
        "\u{16}\u{3}\u{1}\u{2}\0\u{1}",
    ];
    always(&samples, attempt);
    let shapes = [
        ["HTTP/1.1 200 OK\r\n", "a: b\r\n", "\r\n"],
        ["", "HTTP/1.1 100 Continue\r\n\r\n", ""],
        [
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
            "1\r\nx\r\n",
            "0\r\n\r\n",
        ],
        ["HTTP/1.1 200 OK\r\n\r\n", "x", ""],
    ];
    in_proportion(&shapes, attempt);
}
