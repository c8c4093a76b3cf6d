//! A carrier on the loopback: InPost's tracking service, as far as a look-up goes, with answers in the hand of a test.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// What is answered about a parcel; about any other, that nobody knows it.
#[derive(Debug, Clone)]
pub enum Says {
    /// It arrived at this instant (RFC 3339).
    Delivered(&'static str),
    /// It is in this state of InPost's.
    State(&'static str),
    /// Nothing, ever.
    Silence,
    /// 500.
    Failure,
}

/// The carrier. It ends with the runtime of its test.
#[derive(Debug, Clone)]
pub struct CarrierStub {
    /// Where it listens.
    pub url: String,
    known: Arc<Mutex<HashMap<String, Says>>>,
    asked: Arc<Mutex<Vec<String>>>,
    heads: Arc<Mutex<Vec<String>>>,
}

impl CarrierStub {
    /// Starts one.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let stub = Self {
            url,
            known: Arc::default(),
            asked: Arc::default(),
            heads: Arc::default(),
        };
        let serving = stub.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let serving = serving.clone();
                tokio::spawn(async move { serving.serve(stream).await });
            }
        });
        stub
    }

    /// From now on this is said about a parcel.
    pub fn says(&self, number: &str, answer: Says) {
        let mut known = self.known.lock().expect("what is known is whole");
        known.insert(number.to_owned(), answer);
    }

    /// How often it was asked about a parcel.
    pub fn asked(&self, number: &str) -> usize {
        let asked = self.asked.lock().expect("what was asked is whole");
        asked.iter().filter(|path| path.contains(number)).count()
    }

    /// The value of a header of the first question about a parcel; names are in lower case.
    pub fn header(&self, number: &str, name: &str) -> Option<String> {
        let heads = self.heads.lock().expect("what was asked is whole");
        let head = heads.iter().find(|head| head.contains(number))?;
        let value = |line: &str| {
            Some(
                line.split_once(": ")
                    .filter(|(other, _)| *other == name)?
                    .1
                    .to_owned(),
            )
        };
        head.lines().find_map(value)
    }

    async fn serve(&self, mut stream: TcpStream) -> Option<()> {
        let mut head = Vec::new();
        while !head.windows(4).any(|four| four == b"\r\n\r\n") {
            if stream.read_buf(&mut head).await.ok()? == 0 {
                return None;
            }
        }
        let head = String::from_utf8_lossy(&head).into_owned();
        self.heads
            .lock()
            .expect("what was asked is whole")
            .push(head.clone());
        let path = head.split(' ').nth(1)?.to_owned();
        let number = path.rsplit('/').next()?.split('?').next()?.to_owned();
        self.asked.lock().expect("what was asked is whole").push(path);
        let said = self
            .known
            .lock()
            .expect("what is known is whole")
            .get(&number)
            .cloned();
        let (status, body) = match said {
            None => (
                "404 Not Found",
                json!({"status": 404, "error": "resource_not_found"}),
            ),
            Some(Says::Failure) => ("500 Internal Server Error", json!({"error": "internal"})),
            Some(Says::State(state)) => ("200 OK", json!({"tracking_number": number, "status": state})),
            Some(Says::Delivered(at)) => {
                let detail = json!({"status": "delivered", "origin_status": "DOR", "datetime": at});
                let body =
                    json!({"tracking_number": number, "status": "delivered", "tracking_details": [detail]});
                ("200 OK", body)
            }
            Some(Says::Silence) => std::future::pending().await,
        };
        let body = body.to_string();
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
        );
        stream.write_all(answer.as_bytes()).await.ok()
    }
}
