//! The secret of a subscription, and its signatures (contract: Delivery).

use std::{fmt::Write, iter};

use base64::{Engine, engine::general_purpose::STANDARD};
use chrono::{DateTime, TimeDelta, Utc};
use kernel::Invalid;
use oauth::{Secret, SecretKind};
use ring::hmac;

use crate::DeliveryId;

/// The secret's kind: signing keys of subscriptions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WebhookSecretKind;
impl SecretKind for WebhookSecretKind {
    const PREFIX: &'static str = "ps_wh_";
}

/// The signing key of a subscription, shown once and stored sealed.
pub type WebhookSecret = Secret<WebhookSecretKind>;

/// The plain secret as the verifiers of Standard Webhooks take it: `whsec_` and the base64 of the key.
pub fn standard_secret(secret: &WebhookSecret) -> String {
    format!("whsec_{}", STANDARD.encode(secret.reveal()))
}

/// The key is the whole secret as written, including the prefix (D93).
fn key(secret: &WebhookSecret) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, secret.reveal().as_bytes())
}

/// The secrets that sign a subscription's deliveries: one, and during the overlap of a rotation two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SigningSecrets {
    first: WebhookSecret,
    /// The secret of the last rotation, and when it replaces the first one.
    next: Option<(WebhookSecret, DateTime<Utc>)>,
}

impl From<WebhookSecret> for SigningSecrets {
    fn from(only: WebhookSecret) -> Self {
        Self {
            first: only,
            next: None,
        }
    }
}

impl SigningSecrets {
    /// Those of this time: without one that was replaced before.
    #[must_use]
    pub fn at(self, now: DateTime<Utc>) -> Self {
        match self.next {
            Some((next, active_from)) if active_from <= now => next.into(),
            _ => self,
        }
    }

    /// Replaces the present secret by a new one at the end of `overlap`, not negative. A secret that is not
    /// yet active is dropped.
    #[must_use]
    pub fn rotate(self, secret: WebhookSecret, now: DateTime<Utc>, overlap: TimeDelta) -> Self {
        Self {
            next: Some((secret, now + overlap)),
            ..self.at(now)
        }
        .at(now)
    }

    /// When the secret of the last rotation replaces the first one; None without such a rotation.
    pub fn next_from(&self) -> Option<DateTime<Utc>> {
        self.next.as_ref().map(|(_, from)| *from)
    }

    /// The one that makes `X-Signature`.
    pub const fn signing(&self) -> &WebhookSecret {
        &self.first
    }

    /// Those that make `webhook-signature`: the signing one, and the one that will replace it.
    pub fn all(&self) -> impl Iterator<Item = &WebhookSecret> {
        iter::once(&self.first).chain(self.next.as_ref().map(|(next, _)| next))
    }

    /// The plain text, to be sealed: the first secret and, if there is a next one, that and the time from
    /// which it signs, in microseconds since 1970, separated by spaces.
    pub fn reveal(&self) -> String {
        match &self.next {
            None => self.first.reveal().to_owned(),
            Some((next, from)) => {
                let from = from.timestamp_micros();
                format!("{} {} {from}", self.first.reveal(), next.reveal())
            }
        }
    }

    /// Parses what [`Self::reveal`] returned.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let invalid = || Invalid::new("is not a webhook secret");
        let secret = |part| WebhookSecret::presented(part).ok_or_else(invalid);
        let mut parts = text.split(' ');
        let first = secret(parts.next().unwrap_or_default())?;
        let Some(next) = parts.next() else {
            return Ok(first.into());
        };
        let from = parts.next().and_then(|from| from.parse().ok());
        let from = from.and_then(DateTime::from_timestamp_micros);
        let from = from.ok_or_else(|| Invalid::new("has no time of its next secret"))?;
        let next = Some((secret(next)?, from));
        Ok(Self { first, next })
    }
}

/// The value of `X-Signature`: `sha256=` and the lowercase hexadecimal HMAC-SHA256 (RFC 2104) of the body's
/// bytes.
pub fn signature(secret: &WebhookSecret, body: &[u8]) -> String {
    let mut value = "sha256=".to_owned();
    // Two numbers are written in fewer steps than 32 bytes.
    for half in hmac::sign(&key(secret), body).as_ref().as_chunks().0 {
        let _ = write!(value, "{:032x}", u128::from_be_bytes(*half));
    }
    value
}

/// One signature of `webhook-signature` (Standard Webhooks): `v1,` and the base64 of the HMAC-SHA256 of
/// `webhook-id`, `webhook-timestamp` and the body's bytes, joined by dots.
pub fn standard_signature(secret: &WebhookSecret, id: DeliveryId, timestamp: i64, body: &[u8]) -> String {
    let mut context = hmac::Context::with_key(&key(secret));
    context.update(format!("{id}.{timestamp}.").as_bytes());
    context.update(body);
    format!("v1,{}", STANDARD.encode(context.sign()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn signatures_are_those_of_an_independent_implementation() {
        // printf %s "$body" | openssl dgst -sha256 -hmac "$secret", and with `-binary | base64` the other.
        let secret = WebhookSecret::from_random(&[7; 32]);
        let written = "ps_wh_BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc";
        assert_eq!(secret.reveal(), written);
        let expected = "sha256=3f4f581a59a633bb4a36e0add2ba95b4e902753b46e1c19caa78b2b1c32559c1";
        let body = br#"{"id":"x"}"#;
        assert_eq!(signature(&secret, body), expected);
        let expected = "v1,+FbudV0vs4tUB09xF/HJ1597M2d7n6MMDFttW7JZltQ=";
        let id = uuid::Uuid::from_u128(7).into();
        assert_eq!(standard_signature(&secret, id, 1_790_000_000, body), expected);
        let standard = "whsec_cHNfd2hfQndjSEJ3Y0hCd2NIQndjSEJ3Y0hCd2NIQndjSEJ3Y0hCd2NIQndjSEJ3Yw==";
        assert_eq!(standard_secret(&secret), standard);
        assert_eq!(format!("{secret:?}"), "Secret(…)");
    }

    proptest! {
        #[test]
        fn rotations_drop_no_secret_before_its_time(
            rotations in prop::collection::vec((0..100_i64, prop_oneof![Just(0), 1..100_i64]), 0..6),
            later in 0..200_i64,
        ) {
            let secret = |n: usize| WebhookSecret::from_random(&[u8::try_from(n).unwrap(); 32]);
            let (mut now, mut secrets) = (DateTime::<Utc>::UNIX_EPOCH, SigningSecrets::from(secret(0)));
            // The signing secret, and the one that is to come.
            let (mut signing, mut next) = (secret(0), None);
            for (n, (passed, overlap)) in rotations.iter().enumerate() {
                now += TimeDelta::seconds(*passed);
                let overlap = TimeDelta::seconds(*overlap);
                secrets = secrets.rotate(secret(n + 1), now, overlap);
                signing = next.take().filter(|(_, from)| *from <= now).map_or(signing, |(next, _)| next);
                next = Some((secret(n + 1), now + overlap));
            }
            let at = now + TimeDelta::seconds(later);
            let (expected, to_come) = match next {
                Some((next, from)) if from <= at => (next, None),
                next => (signing, next.map(|(next, _)| next)),
            };
            prop_assert_eq!(SigningSecrets::parse(&secrets.reveal()), Ok(secrets.clone()));
            let secrets = secrets.at(at);
            prop_assert_eq!(secrets.signing(), &expected);
            let all: Vec<_> = secrets.all().cloned().collect();
            prop_assert_eq!(all, iter::once(expected).chain(to_come).collect::<Vec<_>>());
        }
    }

    #[test]
    fn stored_secrets_of_other_shapes_are_refused() {
        let one = WebhookSecret::from_random(&[1; 32]);
        let one = one.reveal();
        for text in [
            "",
            "x",
            &format!("{one} {one}"),
            &format!("{one} {one} soon"),
            &format!("{one} x 1"),
        ] {
            assert!(SigningSecrets::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_stored_secret_is_parsed_back() {
        let secret = WebhookSecret::from_random(&[255; 32]);
        assert_eq!(WebhookSecret::presented(secret.reveal()), Some(secret));
        let other_kind = "ps_at_BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc";
        for other in ["", "ps_wh_", "ps_wh_AAAA", other_kind] {
            assert!(WebhookSecret::presented(other).is_none(), "{other}");
        }
    }
}
