//! Sealing: AES-256-GCM (NIST SP 800-38D) under the first key of a ring, opening under any.
//!
//! A sealed value is `length of the key's id (1) ‖ id ‖ salt (16) ‖ nonce (12) ‖ ciphertext ‖ tag (16)`. Salt and nonce are
//! random. Each value has a key of its own, derived from the ring's key, the purpose, what it is bound to and the salt: GCM
//! with random nonces bears only 2^32 values a key, which a busy service would reach.

use std::fmt;

use kernel::{Purpose, Randomness, SealError, Sealer};
use ring::{
    aead::{Aad, NONCE_LEN, Nonce},
    error::Unspecified,
};
use secrecy::{ExposeSecret as _, SecretString};

use crate::{
    KeyError, SystemRandomness,
    key::{Key, prefixed},
};

const SALT_LEN: usize = 16;

/// Seals under the first of its keys, opens what any of them has sealed: put a new key first, and take an old one out once
/// nothing that it sealed needs to open any more.
pub struct KeyRing {
    first: Key,
    others: Vec<Key>,
    randomness: SystemRandomness,
}

impl KeyRing {
    /// A ring of keys that are each written `<id>:<base64 of 32 bytes>`; ids are 1 to 16 letters, digits, `-` or `_`.
    pub fn parse(keys: &[SecretString]) -> Result<Self, KeyError> {
        let mut parsed = Vec::<Key>::new();
        for (place, text) in (1..).zip(keys) {
            let key = Key::parse(text.expose_secret(), place)?;
            if parsed.iter().any(|earlier| earlier.id == key.id) {
                return Err(KeyError::Repeated { place });
            }
            parsed.push(key);
        }
        let mut parsed = parsed.into_iter();
        let first = parsed.next().ok_or(KeyError::None)?;
        Ok(Self {
            first,
            others: parsed.collect(),
            randomness: SystemRandomness::new(),
        })
    }

    /// The id of the key that seals.
    pub fn first_id(&self) -> &str {
        &self.first.id
    }

    /// The ids of all keys, the one that seals first.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.first)
            .chain(&self.others)
            .map(|key| key.id.as_str())
    }

    /// A new key under a new id, written as [`KeyRing::parse`] reads it. It is a secret: only whoever asked may see it.
    pub fn generate(randomness: &dyn Randomness) -> String {
        let unique = randomness.uuid().simple().to_string();
        // The end of a UUIDv7 is random, its beginning is the time.
        let id = format!("k{}", unique.get(24..).unwrap_or(&unique));
        Key::write(&id, &randomness.secret())
    }

    fn try_seal(&self, purpose: Purpose, bound_to: &[u8], plain: &[u8]) -> Result<Vec<u8>, Unspecified> {
        let salt = self.randomness.bytes::<SALT_LEN>();
        let nonce = self.randomness.bytes::<NONCE_LEN>();
        let id_length = u8::try_from(self.first.id.len()).map_err(|_| Unspecified)?;
        let key = self.first.derive(purpose.name(), bound_to, &salt)?;
        let mut text = plain.to_vec();
        let binding = Aad::from(binding(purpose, bound_to));
        key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), binding, &mut text)?;
        Ok([&[id_length], self.first.id.as_bytes(), &salt, &nonce, &text].concat())
    }

    fn try_open(&self, purpose: Purpose, bound_to: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let (id_length, rest) = sealed.split_first()?;
        let (id, rest) = rest.split_at_checked(usize::from(*id_length))?;
        let (salt, rest) = rest.split_first_chunk::<SALT_LEN>()?;
        let (nonce, text) = rest.split_first_chunk::<NONCE_LEN>()?;
        let mut keys = std::iter::once(&self.first).chain(&self.others);
        let key = keys
            .find(|key| key.id.as_bytes() == id)?
            .derive(purpose.name(), bound_to, salt)
            .ok()?;
        let (nonce, mut text) = (Nonce::assume_unique_for_key(*nonce), text.to_vec());
        let plain = key
            .open_in_place(nonce, Aad::from(binding(purpose, bound_to)), &mut text)
            .ok()?;
        Some(plain.to_vec())
    }
}

impl Sealer for KeyRing {
    #[expect(
        clippy::expect_used,
        reason = "fails only for a plain value of 64 GiB, which no caller has"
    )]
    fn seal(&self, purpose: Purpose, bound_to: &[u8], plain: &[u8]) -> Vec<u8> {
        self.try_seal(purpose, bound_to, plain)
            .expect("the value is small enough to be sealed")
    }

    fn open(&self, purpose: Purpose, bound_to: &[u8], sealed: &[u8]) -> Result<Vec<u8>, SealError> {
        self.try_open(purpose, bound_to, sealed).ok_or(SealError)
    }
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "KeyRing(first {}, {} others)",
            self.first.id,
            self.others.len()
        )
    }
}

fn binding(purpose: Purpose, bound_to: &[u8]) -> Vec<u8> {
    [prefixed(purpose.name().as_bytes()), prefixed(bound_to)].concat()
}

#[cfg(test)]
mod tests;
