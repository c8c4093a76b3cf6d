//! Pieces of requests, by themselves.

use std::hint::black_box;

use adapter_sealing::KeyRing;
use anyhow::{Context as _, ensure};
use kernel::{Purpose, Sealer as _};
use oauth::{BearerToken, TokenKind};
use uuid::Uuid;
use webhooks::WebhookSecret;

/// The body of a change of an offer.
const BODY: &[u8] = br#"{"price":{"amount":17900,"currency":"PLN"},"stock":12,"status":"published"}"#;
/// A delivery's body.
const DELIVERY: &[u8] = br#"{"id":"0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e","event":"order.created","occurred_at":"2026-11-20T08:15:30.123456Z","data":{"order_id":"0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e","order_number":"SO-0123456789"}}"#;
/// A sealing key as the configuration has it: 32 bytes, which seal nothing else anywhere.
const KEY: &str = "bench:TfQCq6IEYj4gLzKp/TSogY4N3/34OFh+9aJYhXwjl5I=";

/// A ring of one key.
pub(crate) fn ring() -> anyhow::Result<KeyRing> {
    Ok(KeyRing::parse(&[KEY.into()])?)
}

/// A presented token becomes the key of its row.
pub(crate) fn token_keys(times: u64) -> anyhow::Result<()> {
    let token = BearerToken::from_random(TokenKind::Access, Uuid::from_u128(1).into(), &[7; 32]);
    for _ in 0..times {
        let read = BearerToken::parse(black_box(token.reveal())).context("a token is not read")?;
        black_box(read.key());
    }
    Ok(())
}

/// A body is read strictly.
pub(crate) fn json(times: u64) -> anyhow::Result<()> {
    for _ in 0..times {
        black_box(web::Json::parse(black_box(BODY))?);
    }
    Ok(())
}

/// A delivery is signed.
pub(crate) fn signatures(times: u64) {
    let secret = WebhookSecret::from_random(&[7; 32]);
    for _ in 0..times {
        black_box(webhooks::signature(&secret, black_box(DELIVERY)));
    }
}

/// A cursor's bytes are sealed and opened.
pub(crate) fn seals(times: u64) -> anyhow::Result<()> {
    let ring = ring()?;
    for _ in 0..times {
        let sealed = ring.seal(Purpose::Cursor, b"offers of a seller", black_box(&[7; 28]));
        let opened = ring.open(Purpose::Cursor, b"offers of a seller", &sealed)?;
        ensure!(opened.len() == 28, "what was sealed is not what is opened");
    }
    Ok(())
}
