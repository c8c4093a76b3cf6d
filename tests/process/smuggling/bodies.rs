//! Where a body ends: lengths, chunks, and both in disguise.

use blackbox::request;

use super::listeners::{INNER, listeners, post, refused};

#[tokio::test]
async fn a_length_beside_chunks_or_chunks_in_disguise_are_refused() {
    let listeners = listeners().await;
    let (end, length) = ("0\r\n\r\n", INNER.len() + 5);
    let mut cases = vec![
        (
            "CL.TE",
            post(
                "content-length: 6\r\ntransfer-encoding: chunked\r\n",
                &format!("{end}{INNER}"),
            ),
        ),
        (
            "TE.CL",
            post(
                "transfer-encoding: chunked\r\ncontent-length: 4\r\n",
                &format!("{:x}\r\n{INNER}\r\n{end}", INNER.len()),
            ),
        ),
        (
            "CL.0",
            post(
                "content-length: 0\r\ntransfer-encoding: chunked\r\n",
                &format!("{end}{INNER}"),
            ),
        ),
    ];
    for disguise in [
        "transfer-encoding: xchunked",
        "transfer-encoding: identity",
        "transfer-encoding: chunked, identity",
        "transfer-encoding: identity, chunked",
        "transfer-encoding: gzip, chunked",
        "transfer-encoding: chunked, chunked",
        "transfer-encoding: \"chunked\"",
        "transfer-encoding: chunked;q=1",
        "transfer-encoding: \u{b}chunked",
        "transfer-encoding:",
        "transfer-encoding: chunked\0",
        "transfer-encoding : chunked",
        "transfer-encoding\t: chunked",
        "transfer-encoding\0: chunked",
        " transfer-encoding: chunked",
        "transfer-encoding:\r\n chunked",
        "x-folded: a\r\n transfer-encoding: chunked",
        "x-folded: a\r\n\ttransfer-encoding: chunked",
        "x: y\rtransfer-encoding: chunked",
        "x: y\0transfer-encoding: chunked",
        "transfer-encoding: chunked\r\ntransfer-encoding: chunked",
        "transfer-encoding: chunked\r\ntransfer-encoding: identity",
        "transfer-encoding: identity\r\ntransfer-encoding: chunked",
        ": chunked",
        "transfer\u{2010}encoding: chunked",
    ] {
        cases.push((
            disguise,
            post(&format!("{disguise}\r\n"), &format!("{end}{INNER}")),
        ));
        let both = format!("{disguise}\r\ncontent-length: {length}\r\n");
        cases.push((disguise, post(&both, &format!("{end}{INNER}"))));
    }
    listeners.hold(&cases, refused).await;
    listeners.nothing_was_smuggled();
}

#[tokio::test]
async fn a_length_that_is_no_number_or_said_twice_is_refused() {
    let listeners = listeners().await;
    let n = INNER.len();
    let lengths = [
        format!("+{n}"),
        format!("-{n}"),
        "-0".to_owned(),
        format!("{n},{n}"),
        format!("{n}, {n}"),
        format!("0, {n}"),
        format!("{n} 0"),
        format!("\"{n}\""),
        format!("0x{n:x}"),
        format!("{n}.0"),
        "1e1".to_owned(),
        String::new(),
        "18446744073709551616".to_owned(),
        "9".repeat(40),
        format!("\u{b}{n}"),
        format!("{n}\0"),
        format!("{n}\u{a0}"),
        format!("{n}\r\ncontent-length: {n}"),
        format!("0\r\ncontent-length: {n}"),
        format!("{n}\r\nContent-Length: 0"),
        format!("\r\n {n}"),
        format!("{n};a"),
        format!("{n}_0"),
        format!("٣{n}"),
    ];
    let cases: Vec<_> = lengths
        .iter()
        .map(|length| {
            (
                length.as_str(),
                post(&format!("content-length: {length}\r\n"), INNER),
            )
        })
        .collect();
    listeners.hold(&cases, refused).await;
    listeners.nothing_was_smuggled();
}

#[tokio::test]
async fn a_body_is_as_long_as_it_says_and_never_a_request() {
    let listeners = listeners().await;
    let n = INNER.len();
    let chunk = format!("{n:x}\r\n{INNER}\r\n0\r\n\r\n");
    let mut cases = vec![
        ("a length", post(&format!("content-length: {n}\r\n"), INNER)),
        (
            "zeros before it",
            post(&format!("content-length: 000{n}\r\n"), INNER),
        ),
        (
            "spaces around it",
            post(&format!("content-length: \t {n} \r\n"), INNER),
        ),
        (
            "a length that names itself to be dropped",
            post(
                &format!("connection: content-length\r\ncontent-length: {n}\r\n"),
                INNER,
            ),
        ),
        ("chunks", post("transfer-encoding: chunked\r\n", &chunk)),
        (
            "chunks in capitals",
            post("Transfer-Encoding: CHUNKED\r\n", &chunk),
        ),
        (
            "a chunk's extension",
            post(
                "transfer-encoding: chunked\r\n",
                &chunk.replacen("\r\n", ";a=\"b\"\r\n", 1),
            ),
        ),
        (
            "a trailer",
            post(
                "transfer-encoding: chunked\r\n",
                &chunk.replace("0\r\n\r\n", "0\r\ncontent-length: 9\r\nx: GET / HTTP/1.1\r\n\r\n"),
            ),
        ),
        (
            "expecting leave",
            post(&format!("expect: 100-continue\r\ncontent-length: {n}\r\n"), INNER),
        ),
        (
            "expecting something else",
            post(&format!("expect: 200-ok\r\ncontent-length: {n}\r\n"), INNER),
        ),
    ];
    for method in ["GET", "HEAD", "DELETE", "OPTIONS", "TRACE", "PATCH"] {
        let length = post(&format!("content-length: {n}\r\n"), INNER);
        cases.push((method, length.replacen("POST", method, 1)));
        let chunks = post("transfer-encoding: chunked\r\n", &chunk);
        cases.push((method, chunks.replacen("POST", method, 1)));
    }
    for (name, value) in [
        ("upgrade", "h2c"),
        ("upgrade", "websocket"),
        ("x-http-method-override", "GET"),
        ("te", "trailers"),
    ] {
        cases.push((
            value,
            post(
                &format!("connection: upgrade\r\n{name}: {value}\r\ncontent-length: {n}\r\n"),
                INNER,
            ),
        ));
    }
    listeners.hold(&cases, |said| said.statuses.len() == 1).await;
    listeners.nothing_was_smuggled();
}

#[tokio::test]
async fn a_broken_chunk_ends_its_connection() {
    let listeners = listeners().await;
    let bodies = [
        " 1\r\na\r\n0\r\n\r\n",
        "+1\r\na\r\n0\r\n\r\n",
        "-1\r\na\r\n0\r\n\r\n",
        "0x1\r\na\r\n0\r\n\r\n",
        "1\na\r\n0\r\n\r\n",
        "1\r\r\na\r\n0\r\n\r\n",
        "1;a\n\r\na\r\n0\r\n\r\n",
        "1;a\0\r\na\r\n0\r\n\r\n",
        "1\r\nab\r\n0\r\n\r\n",
        "1\r\na\n0\r\n\r\n",
        "10000000000000001\r\na\r\n0\r\n\r\n",
        "1\r\na\r\n0\n\n",
        "1\r\na\r\n0\r\n\n",
        "0\r\nx: 1\n\n",
        "0\r\nx: 1\n\r\n",
        "\r\n0\r\n\r\n",
        "1\r\na0\r\n\r\n",
    ];
    let cases: Vec<_> = bodies
        .iter()
        .map(|body| {
            (
                *body,
                post("transfer-encoding: chunked\r\n", &format!("{body}{INNER}")),
            )
        })
        .collect();
    // Who refuses the request without its body may have said so before the chunk was read.
    listeners.hold(&cases, |said| said.statuses.len() <= 1).await;
    listeners.nothing_was_smuggled();
}

#[tokio::test]
async fn a_head_and_its_body_may_come_in_any_pieces() {
    let listeners = listeners().await;
    let world = &listeners.world;
    let seller = world.seller().await;
    let application = world.application(&seller, &["offers:read"]).await;
    let form = format!(
        "grant_type=client_credentials&client_id={}&client_secret={}",
        application.client_id, application.client_secret
    );
    let length = form.len().to_string();
    let form_type = ("content-type", "application/x-www-form-urlencoded");
    let plain = request("POST", "/oauth/token", &[form_type, ("content-length", &length)]) + &form;
    let chunked = request(
        "POST",
        "/oauth/token",
        &[form_type, ("transfer-encoding", "chunked")],
    ) + &format!(
        "{:x};x\r\n{}\r\n{:x}\r\n{}\r\n0\r\nx: y\r\n\r\n",
        20,
        &form[..20],
        form.len() - 20,
        &form[20..]
    );
    for (whole, piece) in [
        (&plain, 1),
        (&plain, 7),
        (&plain, 4_000),
        (&chunked, 1),
        (&chunked, 11),
        (&chunked, 4_000),
    ] {
        let mut wire = blackbox::Wire::connect(&world.server.base_url).await;
        // Twice, so that the next request's beginning comes along with the end of the one before it.
        for piece in whole.repeat(2).as_bytes().chunks(piece) {
            assert!(wire.send(piece).await);
            if piece.len() < 4_000 {
                tokio::task::yield_now().await;
            }
        }
        for _ in 0..2 {
            let answer = wire.answer().await.expect("an answer").expect(200);
            assert!(answer.json()["access_token"].is_string());
        }
    }
}
