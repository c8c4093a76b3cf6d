//! What receivers of webhooks answer, byte for byte over a connection: every answer ends the attempt, in a status or a failure.

use std::{
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Sender, channel},
    },
    thread,
    time::Duration,
};

use adapter_webhook_sender::{HttpSender, SenderSettings};
use uuid::Uuid;
use webhooks::{
    AddressPolicy, AddressRules, Message, Outcome, Sent, WebhookEvent, WebhookSecret, WebhookSender as _,
    WebhookUrl, signature,
};

use crate::held::is_printable;
use crate::listeners::waiting;
use crate::{Target, targets::texts};

pub(crate) const TARGET: Target = Target {
    name: "receivers",
    run,
    seeds: || {
        texts(&[
            "HTTP/1.1 204 No Content\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 500 Oh\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1/\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
            "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n\x00\x01",
            "HTTP/1.0 200\r\n\r\nuntil the end",
            "HTTP/1.1 410 Gone\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nxx",
            "\x16\x03\x01\x02\x00\x01",
        ])
    },
    words: &[
        "HTTP/1.1 ",
        "HTTP/2.0 ",
        "200",
        "999",
        "099",
        "1xx",
        "\r\n",
        "\r\n\r\n",
        "content-length: ",
        "transfer-encoding: chunked\r\n",
        "ffffffffffffffff\r\n",
        "0\r\n\r\n",
        ": ",
        "connection: close\r\n",
        "18446744073709551616",
        "gzip",
    ],
    grows: &[
        ("HTTP/1.1 200 OK\r\n", "a: b\r\n", "\r\n"),
        ("", "HTTP/1.1 100 Continue\r\n\r\n", ""),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
            "1\r\nx\r\n",
            "0\r\n\r\n",
        ),
        ("HTTP/1.1 200 OK\r\n\r\n", "x", ""),
    ],
};

/// One attempt takes no longer, whatever comes.
const PATIENCE: Duration = Duration::from_millis(500);

struct Stand {
    sender: HttpSender,
    url: WebhookUrl,
    answers: Sender<Vec<u8>>,
}

impl Stand {
    /// A sender, and a receiver in a thread of its own that answers what it is told and closes.
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let (answers, told) = channel::<Vec<u8>>();
        thread::spawn(move || {
            while let Ok(answer) = told.recv() {
                let Ok((stream, _)) = listener.accept() else {
                    return;
                };
                drop(answered(stream, &answer));
            }
        });
        let rules = AddressRules {
            policy: AddressPolicy::Any,
            deny: Vec::new(),
        };
        let mut settings = SenderSettings::new("fuzz", "https://docs.example", rules);
        settings.attempt_timeout = PATIENCE;
        settings.name_servers = vec!["127.0.0.1:9".parse().expect("an address")];
        settings.kept_connections = 0;
        Self {
            sender: waiting(|runtime| {
                let _within = runtime.enter();
                let sender = HttpSender::new(&settings);
                async { sender.expect("a sender") }
            }),
            url: WebhookUrl::parse(format!("http://{address}/hook"), AddressPolicy::Any).expect("an address"),
            answers,
        }
    }
}

fn answered(mut stream: TcpStream, answer: &[u8]) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut request = Vec::new();
    let mut piece = [0; 4096];
    while !request.ends_with(BODY) {
        let read = stream.read(&mut piece)?;
        if read == 0 {
            break;
        }
        request.extend_from_slice(&piece[..read]);
    }
    stream.write_all(answer)
}

const BODY: &[u8] = br#"{"id":"x","event":"order.paid"}"#;

static STAND: Mutex<Option<Stand>> = Mutex::new(None);

fn run(bytes: &[u8]) {
    let mut stand = STAND.lock().unwrap_or_else(PoisonError::into_inner);
    let stand = stand.get_or_insert_with(Stand::new);
    stand.answers.send(bytes.to_vec()).expect("the receiver lives");
    let message = Message {
        application: Uuid::from_u128(1).into(),
        delivery: Uuid::from_u128(7).into(),
        event: WebhookEvent::OrderPaid,
        url: stand.url.clone(),
        body: Arc::from(BODY),
        signature: signature(&WebhookSecret::from_random(&[7; 32]), BODY),
    };
    let Sent::Attempted(attempted) = waiting(|_| stand.sender.send(&message)) else {
        panic!("nobody else is sending");
    };
    assert!(attempted.duration < PATIENCE * 8, "{attempted:?}");
    match attempted.outcome {
        Outcome::Answered(status) => assert!((100..1000).contains(&status), "{status}"),
        Outcome::Failed(failure) => is_printable(&failure.to_string(), 0),
    }
}
