//! Hostile receivers.

use std::{
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncWrite, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
    time::sleep,
};
use webhooks::{Failure, Outcome};

use super::{
    receiver::{OK, Receiver, read_request},
    support::{LONG, SHORT, delivers, failed, is_protocol, outcome, send, sender, sender_with},
};
use crate::read_limit::HEAD_MAX;

/// More than the kernel buffers of an answer that is not read.
const BUFFERED: usize = 24 << 20;

/// Writes the same bytes until the connection accepts no more, or `enough` bytes. Returns how many it accepted.
async fn pour(stream: &mut (impl AsyncWrite + Unpin), bytes: &[u8], enough: usize) -> usize {
    let mut taken = 0;
    while taken < enough {
        match stream.write(bytes).await {
            Ok(written) if written > 0 => taken += written,
            _ => break,
        }
    }
    taken
}

/// A receiver that sends `head` and then `rest` repeatedly, up to 100 MB, and the number of bytes that were accepted.
async fn pouring(head: &'static [u8], rest: &'static [u8]) -> (Receiver, Arc<AtomicUsize>) {
    let taken = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&taken);
    let receiver = Receiver::start(move |mut stream, _| {
        let counted = Arc::clone(&counted);
        async move {
            read_request(&mut stream).await;
            let _ = stream.write_all(head).await;
            let poured = pour(&mut stream, &rest.repeat(65_536 / rest.len()), 100_000_000).await;
            counted.fetch_add(poured, SeqCst);
        }
    })
    .await;
    (receiver, taken)
}

#[tokio::test]
async fn endless_and_huge_bodies_are_not_read() {
    for head in [
        b"HTTP/1.1 200 OK\r\n\r\n".as_slice(),
        b"HTTP/1.1 200 OK\r\ncontent-length: 100000000\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffff\r\n",
    ] {
        let (receiver, taken) = pouring(head, b"x").await;
        let attempted = send(&sender(), &receiver.url()).await;
        assert_eq!(attempted.outcome, Outcome::Answered(200));
        assert!(attempted.duration < LONG);
        assert!(taken.load(SeqCst) < BUFFERED);
    }
}

#[tokio::test]
async fn a_dripping_body_is_not_awaited() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n1".as_slice();
    let receiver = Receiver::stalling_after(head).await;
    let sender = sender();
    let begin = Instant::now();
    let attempted = send(&sender, &receiver.url()).await;
    assert_eq!(attempted.outcome, Outcome::Answered(200));
    // The attempt ends with the head; reading the rest takes at most a second.
    assert!(attempted.duration < Duration::from_secs(1) && begin.elapsed() < LONG);
    delivers(&sender, &receiver.url(), 1).await;
    assert_eq!(receiver.taken(), 2);
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
        let (receiver, taken) = pouring(head, rest).await;
        let outcome = outcome(&sender(), &receiver.url()).await;
        assert!(is_protocol(&outcome), "{outcome:?} {rest:?}");
        assert!(taken.load(SeqCst) < BUFFERED);
    }
}

#[tokio::test]
async fn a_head_of_many_fields_or_16_kib_passes_and_one_byte_more_does_not() {
    let (begin, end) = ("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n", "\r\n");
    let field = |length: usize| format!("x: {}\r\n", "x".repeat(length - begin.len() - end.len() - 5));
    for (fields, passes) in [
        ("a: b\r\n".repeat(1000), true),
        (field(HEAD_MAX), true),
        (field(HEAD_MAX + 1), false),
    ] {
        let receiver = Receiver::stalling_after(format!("{begin}{fields}{end}").into_bytes()).await;
        let outcome = outcome(&sender(), &receiver.url()).await;
        assert_eq!(outcome == Outcome::Answered(200), passes, "{outcome:?}");
        assert_eq!(is_protocol(&outcome), !passes);
    }
}

#[tokio::test]
async fn ten_interim_answers_are_skipped_and_no_more() {
    for (interim, passes) in [(0, true), (10, true), (11, false), (500, false)] {
        let mut answer = b"HTTP/1.1 103 Early Hints\r\n\r\n".repeat(interim);
        answer.extend_from_slice(OK);
        let receiver = Receiver::stalling_after(answer).await;
        let outcome = outcome(&sender(), &receiver.url()).await;
        let refused = failed(Failure::protocol("more than 10 interim answers"));
        let expected = if passes { Outcome::Answered(200) } else { refused };
        assert_eq!(outcome, expected, "{interim}");
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
        let receiver = Receiver::stalling_after(answer).await;
        let outcome = outcome(&sender(), &receiver.url()).await;
        assert!(is_protocol(&outcome), "{outcome:?} {}", answer.escape_ascii());
    }
}

/// Sends an answer, then closes the connection, by a reset or normally.
async fn ending(answer: &'static [u8], reset: bool) -> Receiver {
    Receiver::start(move |mut stream, _| async move {
        read_request(&mut stream).await;
        let _ = stream.write_all(answer).await;
        if reset {
            stream.set_zero_linger().unwrap();
        }
    })
    .await
}

#[tokio::test]
async fn a_connection_that_closes_early_is_no_answer() {
    for reset in [false, true] {
        for answer in [b"".as_slice(), b"HTTP/1.1 20", b"HTTP/1.1 200 OK\r\na: b\r\n"] {
            let receiver = ending(answer, reset).await;
            assert_eq!(outcome(&sender(), &receiver.url()).await, failed(Failure::Closed));
            assert_eq!(receiver.taken(), 1, "only reused connections are retried");
        }
    }
    let receiver = ending(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n123", false).await;
    delivers(&sender(), &receiver.url(), 1).await;
}

#[tokio::test]
async fn a_dripping_head_ends_with_the_attempt() {
    let receiver = Receiver::start(|mut stream, _| async move {
        read_request(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nx: ").await;
        while stream.write_all(b"x").await.is_ok() {
            sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let sender = sender_with(|settings| settings.attempt_timeout = SHORT);
    let attempted = send(&sender, &receiver.url()).await;
    assert_eq!(attempted.outcome, failed(Failure::TimedOut));
    assert!(attempted.duration >= SHORT && attempted.duration < LONG);
}

#[tokio::test]
async fn a_receiver_that_never_accepts_costs_the_connect_timeout() {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut queue = Vec::new();
    while let Ok(Ok(stream)) = tokio::time::timeout(SHORT, TcpStream::connect(address)).await {
        queue.push(stream);
    }
    let sender = sender_with(|settings| settings.connect_timeout = SHORT);
    let attempted = send(&sender, &format!("http://{address}/")).await;
    assert_eq!(attempted.outcome, failed(Failure::TimedOut));
    assert!(attempted.duration >= SHORT && attempted.duration < LONG);
}

#[tokio::test]
async fn a_closed_port_is_refused() {
    let receiver = Receiver::answering(OK).await;
    let url = receiver.url();
    drop(receiver);
    tokio::task::yield_now().await;
    assert_eq!(outcome(&sender(), &url).await, failed(Failure::Refused));
}

/// Resident memory of this process, in KiB.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[tokio::test]
async fn many_hostile_receivers_need_little_memory() {
    let (endless, _) = pouring(b"HTTP/1.1 200 OK\r\n\r\n", b"x").await;
    let (headers, _) = pouring(b"HTTP/1.1 200 OK\r\n", b"a: b\r\n").await;
    let sender = Arc::new(sender_with(|settings| {
        settings.attempt_timeout = LONG;
        settings.connections_per_host = NonZeroUsize::new(400).unwrap();
        settings.connections_per_application = settings.connections_per_host;
    }));
    let before = resident();
    let attempts = (0..400).map(|n| {
        let (sender, url) = (Arc::clone(&sender), [&endless, &headers][n % 2].url());
        tokio::spawn(async move { send(&sender, &url).await })
    });
    for attempt in attempts.collect::<Vec<_>>() {
        attempt.await.unwrap();
    }
    // The receivers offered 40 GB. Other tests run in the same process.
    assert!(resident().saturating_sub(before) < 64 * 1024);
}
