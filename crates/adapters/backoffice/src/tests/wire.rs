//! What only a real connection shows: bodies in pieces, refusals before the body has arrived.

use std::time::Duration;

use actix_web::dev::ServerHandle;
use actix_web::rt::net::TcpStream;
use actix_web::{App, HttpServer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::fixture::{Office, TOKEN, uuid};
use crate::configure;

/// A server over an office, and a connection to it.
pub(crate) async fn connected(office: &Office) -> (ServerHandle, TcpStream) {
    let back_office = office.back_office.clone();
    let server = HttpServer::new(move || App::new().configure(configure(back_office.clone())))
        .workers(1)
        // A client that closes its side has gone: nobody sends half a request and waits for a whole answer.
        .h1_allow_half_closed(false)
        .disable_signals()
        .bind(("127.0.0.1", 0))
        .unwrap();
    let address = server.addrs()[0];
    let server = server.run();
    let handle = server.handle();
    actix_web::rt::spawn(server);
    (handle, TcpStream::connect(address).await.unwrap())
}

fn head(token: &str, seller: &str, body: &str) -> String {
    format!(
        "POST /sellers/{seller}/offers:import HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\
         content-type: application/x-ndjson\r\n{body}\r\n\r\n"
    )
}

fn lines(numbers: std::ops::Range<u128>) -> String {
    let line = |id| {
        format!(
            "{{\"id\":\"{}\",\"title\":\"t\",\"handle\":\"h\",\"status\":\"draft\",\"url\":\"https://shop.example/h\"}}\n",
            uuid(id)
        )
    };
    numbers.map(line).collect()
}

/// Sends a piece of a chunked body.
async fn send_chunk(connection: &mut TcpStream, chunk: &str) {
    let framed = format!("{:x}\r\n{chunk}\r\n", chunk.len());
    connection.write_all(framed.as_bytes()).await.unwrap();
}

pub(crate) async fn until_closed(connection: &mut TcpStream) -> String {
    let mut all = Vec::new();
    connection.read_to_end(&mut all).await.unwrap();
    String::from_utf8(all).unwrap()
}

/// Waits for what another task brings about.
pub(crate) async fn eventually(holds: impl Fn() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), waiting)
        .await
        .unwrap();
}

#[actix_web::test]
async fn an_import_is_written_while_it_arrives_and_stays_when_the_client_goes_away() {
    let (office, seller) = Office::with_seller().await;
    let (server, mut connection) = connected(&office).await;
    let head = head(TOKEN, &seller, "transfer-encoding: chunked");
    connection.write_all(head.as_bytes()).await.unwrap();
    send_chunk(&mut connection, &lines(0..6_000)).await;
    eventually(|| office.store.rows().offers.len() == 5_000).await;
    drop(connection);
    server.stop(true).await;
    office.back_office.tasks.drained().await;
    assert_eq!(office.store.rows().offers.len(), 5_000);
}

#[actix_web::test]
async fn an_import_in_pieces_is_answered_when_it_has_ended() {
    let (office, seller) = Office::with_seller().await;
    let (server, mut connection) = connected(&office).await;
    let head = head(TOKEN, &seller, "transfer-encoding: chunked\r\nconnection: close");
    connection.write_all(head.as_bytes()).await.unwrap();
    for n in 0..10 {
        send_chunk(&mut connection, &lines(n * 700..(n + 1) * 700)).await;
    }
    send_chunk(&mut connection, "").await;
    let answer = until_closed(&mut connection).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(
        answer.ends_with(r#"{"created":7000,"updated":0,"unchanged":0,"rejected_total":0,"rejected":[]}"#)
    );
    server.stop(false).await;
}

#[actix_web::test]
async fn who_may_not_import_is_told_before_the_body_has_arrived() {
    let (office, seller) = Office::with_seller().await;
    for (token, seller, status) in [("x", &seller, "401"), (TOKEN, &uuid(99), "404")] {
        for body in ["transfer-encoding: chunked", "content-length: 99999999"] {
            let (server, mut connection) = connected(&office).await;
            connection
                .write_all(head(token, seller, body).as_bytes())
                .await
                .unwrap();
            let answer = until_closed(&mut connection).await;
            assert!(
                answer.starts_with(&format!("HTTP/1.1 {status}")),
                "{body}: {answer}"
            );
            server.stop(false).await;
        }
    }
}

#[actix_web::test]
async fn a_client_that_falls_silent_is_cut_off() {
    let (mut office, seller) = Office::with_seller().await;
    let mut settings = (*office.back_office.settings).clone();
    settings.body_timeout = Duration::from_millis(50);
    office.back_office.settings = std::sync::Arc::new(settings);
    for path in [format!("/sellers/{seller}/offers:import"), "/sellers".to_owned()] {
        let (server, mut connection) = connected(&office).await;
        let head = head(TOKEN, &seller, "content-length: 10")
            .replace(&format!("/sellers/{seller}/offers:import"), &path);
        connection.write_all(head.as_bytes()).await.unwrap();
        connection.write_all(b"{").await.unwrap();
        let answer = until_closed(&mut connection).await;
        assert!(answer.starts_with("HTTP/1.1 400"), "{path}: {answer}");
        assert!(answer.contains("in time"), "{path}: {answer}");
        server.stop(false).await;
    }
}
