//! Hostile receivers.

use std::future::ready;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fuzz::{mutated, runner};
use testkit::HttpServer;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{sleep, timeout};
use webhooks::{AttemptFailure, Outcome};

use super::support::{
    LONG, OK, SHORT, answering, delivers, failed, is_protocol, outcome, receive_and_send, send, sender,
    sender_with, stalling_after, times_out,
};
use crate::read_limit::MAX_HEAD_SIZE;

/// More than the kernel buffers of an answer that is not read.
const BUFFERED: usize = 24 << 20;

/// A receiver that sends `head` and then `rest` repeatedly, up to 100 MB, and the number of bytes that were
/// accepted.
async fn pouring(head: &'static [u8], rest: &'static [u8]) -> (HttpServer, Arc<AtomicUsize>) {
    let accepted = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&accepted);
    let receiver = HttpServer::start_raw(move |mut stream| {
        let counted = Arc::clone(&counted);
        async move {
            receive_and_send(&mut stream, head).await;
            let rest = rest.repeat(65_536 / rest.len());
            while counted.load(SeqCst) < 100_000_000
                && let Ok(written @ 1..) = stream.write(&rest).await
            {
                counted.fetch_add(written, SeqCst);
            }
        }
    })
    .await;
    (receiver, accepted)
}

#[tokio::test]
async fn endless_and_huge_bodies_are_not_read() {
    for head in [
        b"HTTP/1.1 200 OK\r\n\r\n".as_slice(),
        b"HTTP/1.1 200 OK\r\ncontent-length: 100000000\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffff\r\n",
    ] {
        let (receiver, accepted) = pouring(head, b"x").await;
        let attempted = send(&sender(), &receiver.url()).await;
        assert_eq!(attempted.outcome, Outcome::Answered(200));
        assert!(attempted.duration < LONG);
        assert!(accepted.load(SeqCst) < BUFFERED);
    }
}

#[tokio::test]
async fn a_dripping_body_is_not_awaited() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n1".as_slice();
    let receiver = stalling_after(head).await;
    let sender = sender();
    let begin = Instant::now();
    let mut durations = Vec::new();
    for _ in 0..3 {
        let attempted = send(&sender, &receiver.url()).await;
        assert_eq!(attempted.outcome, Outcome::Answered(200));
        durations.push(attempted.duration);
    }
    // An attempt ends with the head; reading the rest takes at most a second. A busy machine makes some
    // longer.
    let shortest = durations.iter().min().unwrap();
    assert!(*shortest < Duration::from_secs(1) && begin.elapsed() < LONG * 3);
    assert_eq!(receiver.connections(), 3);
}

#[tokio::test]
async fn endless_heads_are_cut() {
    for (head, rest) in [
        (b"HTTP/1.1 200 OK\r\n".as_slice(), b"a: b\r\n".as_slice()),
        (b"HTTP/1.1 200 OK\r\nx: ", b"x"),
        (b"HTTP/1.1 200 ", b"x"),
        (b"", b"\r\n"),
        (b"", b" "),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    ] {
        let (receiver, accepted) = pouring(head, rest).await;
        let outcome = outcome(&sender(), &receiver.url()).await;
        assert!(is_protocol(&outcome), "{outcome:?} {rest:?}");
        assert!(accepted.load(SeqCst) < BUFFERED);
    }
}

#[tokio::test]
async fn heads_of_16_kib_many_fields_and_ten_interim_responses_pass_and_larger_ones_do_not() {
    let (begin, end) = ("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n", "\r\n");
    let field = |length: usize| format!("x: {}\r\n", "x".repeat(length - begin.len() - end.len() - 5));
    let head = |fields: String| format!("{begin}{fields}{end}");
    let interim = |count| "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(count) + &head(String::new());
    for (answer, is_accepted) in [
        (head("a: b\r\n".repeat(1000)), true),
        (head(field(MAX_HEAD_SIZE)), true),
        (head(field(MAX_HEAD_SIZE + 1)), false),
        (interim(10), true),
        (interim(11), false),
        (interim(500), false),
    ] {
        let receiver = stalling_after(answer.clone().into_bytes()).await;
        let outcome = outcome(&sender(), &receiver.url()).await;
        assert_eq!(outcome == Outcome::Answered(200), is_accepted, "{outcome:?}");
        if answer.contains("103") && !is_accepted {
            let refused = AttemptFailure::protocol("more than 10 interim responses");
            assert_eq!(outcome, failed(refused));
        }
        assert_eq!(is_protocol(&outcome), !is_accepted);
    }
}

#[tokio::test]
async fn an_answer_that_is_not_http_is_a_protocol_failure() {
    for answer in [
        b"SSH-2.0-OpenSSH_9.2\r\n".as_slice(),
        b"220 mail.example.com ESMTP\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/1.1 099 ?\r\n\r\n",
        b"HTTP/3.0 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\na b\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\0: x\r\n\r\n",
        b"\0\0\0\x04\x04\0\0\0\0\0",
        b"<html>",
    ] {
        let receiver = stalling_after(answer).await;
        let outcome = outcome(&sender(), &receiver.url()).await;
        assert!(is_protocol(&outcome), "{outcome:?} {}", answer.escape_ascii());
    }
}

#[test]
fn whatever_a_receiver_answers_ends_the_attempt() {
    let samples = [
        OK,
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 500 Oh\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        b"HTTP/1.0 302 Found\r\nlocation: http://127.0.0.1/\r\n\r\nuntil the end",
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n\0",
    ];
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _within = runtime.enter();
    let answer = Arc::new(Mutex::new(Vec::new()));
    let next = Arc::clone(&answer);
    let receiver = HttpServer::start(move |_| ready(Some(next.lock().unwrap().clone())));
    let url = runtime.block_on(receiver).url();
    let sender = sender_with(|settings| settings.max_idle_connections = 0);
    let check = |bytes| {
        *answer.lock().unwrap() = bytes;
        let attempted = runtime.block_on(send(&sender, &url));
        assert!(attempted.duration < LONG, "{attempted:?}");
        match attempted.outcome {
            Outcome::Answered(status) => assert!((100..1000).contains(&status), "{status}"),
            Outcome::Failed(failure) => assert!(!failure.to_string().contains(char::is_control)),
        }
        Ok(())
    };
    runner().run(&mutated(samples), check).unwrap();
}

#[tokio::test]
async fn a_connection_that_closes_early_is_no_answer() {
    let ending = async |answer: &'static [u8], is_reset| {
        HttpServer::start_raw(move |mut stream| async move {
            receive_and_send(&mut stream, answer).await;
            if is_reset {
                stream.set_zero_linger().unwrap();
            }
        })
        .await
    };
    for is_reset in [false, true] {
        for answer in [b"".as_slice(), b"HTTP/1.1 20", b"HTTP/1.1 200 OK\r\na: b\r\n"] {
            let receiver = ending(answer, is_reset).await;
            assert_eq!(
                outcome(&sender(), &receiver.url()).await,
                failed(AttemptFailure::Closed)
            );
            assert_eq!(receiver.connections(), 1, "only reused connections are retried");
        }
    }
    let receiver = ending(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n123", false).await;
    delivers(&sender(), &receiver.url(), 1).await;
}

#[tokio::test]
async fn a_silent_or_dripping_handshake_and_a_dripping_head_end_with_the_attempt() {
    let drip = async |mut stream: TcpStream| {
        while stream.write_all(b"x").await.is_ok() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    let dripping = HttpServer::start_raw(move |mut stream| async move {
        receive_and_send(&mut stream, b"HTTP/1.1 200 OK\r\nx: ").await;
        drip(stream).await;
    })
    .await;
    // The beginning of a TLS record with 16 KiB of the handshake.
    let shaking_hands = HttpServer::start_raw(move |mut stream| async move {
        stream.write_all(&[22, 3, 3, 0x40, 0]).await.unwrap();
        drip(stream).await;
    })
    .await;
    let silent = HttpServer::start_raw(|stream| async move {
        std::future::pending::<()>().await;
        drop(stream);
    })
    .await;
    let sender = sender_with(|settings| settings.attempt_timeout = SHORT);
    times_out(&sender, &dripping.url()).await;
    for receiver in [silent, shaking_hands] {
        times_out(&sender, &receiver.url().replace("http:", "https:")).await;
    }
}

#[tokio::test]
async fn a_receiver_that_never_accepts_costs_the_connect_timeout() {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut queue = Vec::new();
    while let Ok(Ok(stream)) = timeout(SHORT, TcpStream::connect(address)).await {
        queue.push(stream);
    }
    let sender = sender_with(|settings| settings.connect_timeout = SHORT);
    times_out(&sender, &format!("http://{address}/")).await;
}

#[tokio::test]
async fn a_closed_port_is_refused() {
    let receiver = answering(OK).await;
    let url = receiver.url();
    receiver.stop().await;
    assert_eq!(outcome(&sender(), &url).await, failed(AttemptFailure::Refused));
}
