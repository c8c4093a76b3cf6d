//! Seals with the first key of a ring and opens with any: AES-256-GCM (NIST SP 800-38D).
//!
//! A sealed value is `length of the key's id (1) ‖ id ‖ salt (16) ‖ nonce (12) ‖ ciphertext ‖ tag (16)`. Salt
//! and nonce are random. Each value has a separate key, derived from the ring's key, the purpose, the binding
//! and the salt: GCM with random nonces allows only 2^32 values per key, and a busy service would reach that
//! number.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use kernel::{Randomness, SealError, SealPurpose, Sealer};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::error::Unspecified;
use ring::hkdf::{HKDF_SHA256, Prk, Salt};
use secrecy::{ExposeSecret as _, SecretString};

use crate::SystemRandomness;

const SALT_LEN: usize = 16;
/// Maximum length in bytes: every sealed value contains the id.
const MAX_ID: usize = 16;
const HKDF_SALT: &[u8] = b"seller-api sealing";

/// Seals with the first key, opens with any. To rotate, put a new key first, and remove the old key when no
/// value sealed with it is needed any more.
pub struct KeyRing {
    first: Key,
    others: Vec<Key>,
    randomness: SystemRandomness,
}

/// Identifies keys by their position in the list, from 1, and never prints one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error("there must be at least one key; create one with `seller-api admin keys generate`")]
    None,
    #[error(
        "key {0} must be written as `<id>:<base64 of 32 bytes>`; create one with `seller-api admin keys generate`"
    )]
    Form(usize),
    #[error("the id of key {0} must be 1 to {MAX_ID} ASCII letters, digits, '-' or '_'")]
    Id(usize),
    #[error(
        "key {0} must be the base64 of 32 random bytes, with padding; create one with `seller-api admin keys generate`"
    )]
    Bytes(usize),
    #[error(
        "key {0} is not random: its bytes are all equal or count up, as in examples; \
         create one with `seller-api admin keys generate`"
    )]
    Guessable(usize),
    #[error("the id of key {0} is also that of an earlier key: ids must be unique")]
    Repeated(usize),
}

struct Key {
    id: String,
    root: Prk,
}

impl Key {
    fn parse(text: &str, place: usize) -> Result<Self, KeyError> {
        let (id, bytes) = text.trim().split_once(':').ok_or(KeyError::Form(place))?;
        let is_id_byte = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if !(1..=MAX_ID).contains(&id.len()) || !id.bytes().all(is_id_byte) {
            return Err(KeyError::Id(place));
        }
        let bytes = STANDARD.decode(bytes).ok().filter(|bytes| bytes.len() == 32);
        let bytes = bytes.ok_or(KeyError::Bytes(place))?;
        if is_guessable(&bytes) {
            return Err(KeyError::Guessable(place));
        }
        Ok(Self {
            id: id.to_owned(),
            root: Salt::new(HKDF_SHA256, HKDF_SALT).extract(&bytes),
        })
    }

    /// A secret for `info` (HKDF-Expand). Its inputs differ from those of every sealed value by their purpose.
    fn secret(&self, info: &[u8]) -> Result<[u8; 32], Unspecified> {
        let mut secret = [0; 32];
        let id = length_prefixed(self.id.as_bytes());
        self.root.expand(&[&id, info], HKDF_SHA256)?.fill(&mut secret)?;
        Ok(secret)
    }

    fn format(id: &str, bytes: &[u8; 32]) -> String {
        format!("{id}:{}", STANDARD.encode(bytes))
    }

    /// Derives the key of one sealed value (HKDF-Expand, RFC 5869 §2.3).
    fn value_key(&self, binding: &[u8], salt: &[u8]) -> Result<LessSafeKey, Unspecified> {
        let id = length_prefixed(self.id.as_bytes());
        let info = [id.as_slice(), binding, salt];
        let okm = self.root.expand(&info, &AES_256_GCM)?;
        Ok(LessSafeKey::new(UnboundKey::from(okm)))
    }
}

/// Whether the bytes look like a placeholder: all equal, or counting up.
fn is_guessable(bytes: &[u8]) -> bool {
    let counts_by = |step: u8| {
        let mut pairs = bytes.iter().zip(bytes.iter().skip(1));
        pairs.all(|(one, next)| one.wrapping_add(step) == *next)
    };
    counts_by(0) || counts_by(1)
}

/// Encodes purpose and binding of a value unambiguously, both with a length prefix.
fn binding(purpose: SealPurpose, bound_to: &[u8]) -> Vec<u8> {
    [
        length_prefixed(purpose.as_str().as_bytes()),
        length_prefixed(bound_to),
    ]
    .concat()
}

fn length_prefixed(bytes: &[u8]) -> Vec<u8> {
    let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    [&length.to_be_bytes(), bytes].concat()
}

impl KeyRing {
    /// Parses keys of the form `<id>:<base64 of 32 bytes>`. An id is 1 to 16 letters, digits, `-` or `_`.
    pub fn parse(keys: &[SecretString]) -> Result<Self, KeyError> {
        let mut parsed = Vec::<Key>::new();
        for (place, text) in (1..).zip(keys) {
            let key = Key::parse(text.expose_secret(), place)?;
            if parsed.iter().any(|earlier| earlier.id == key.id) {
                return Err(KeyError::Repeated(place));
            }
            parsed.push(key);
        }
        let mut parsed = parsed.into_iter();
        Ok(Self {
            first: parsed.next().ok_or(KeyError::None)?,
            others: parsed.collect(),
            randomness: SystemRandomness::new(),
        })
    }

    /// The id of the key that seals.
    pub fn first_id(&self) -> &str {
        &self.first.id
    }

    /// The ids of all keys, the sealing key first.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.keys().map(|key| key.id.as_str())
    }

    /// A new key with a new id, in the format of [`KeyRing::parse`].
    pub fn generate(randomness: &dyn Randomness) -> String {
        let unique = randomness.uuid().simple().to_string();
        // The start of a UUIDv7 is the time, its end is random.
        let id = format!("k{}", unique.get(24..).unwrap_or(&unique));
        Key::format(&id, &randomness.secret())
    }

    fn keys(&self) -> impl Iterator<Item = &Key> {
        std::iter::once(&self.first).chain(&self.others)
    }

    fn try_seal(&self, binding: &[u8], plain: &[u8]) -> Result<Vec<u8>, Unspecified> {
        let salt = self.randomness.bytes::<SALT_LEN>();
        let nonce = self.randomness.bytes::<NONCE_LEN>();
        let id = self.first.id.as_bytes();
        let id_length = u8::try_from(id.len()).map_err(|_| Unspecified)?;
        let key = self.first.value_key(binding, &salt)?;
        let mut text = plain.to_vec();
        let unique = Nonce::assume_unique_for_key(nonce);
        key.seal_in_place_append_tag(unique, Aad::from(binding), &mut text)?;
        Ok([&[id_length], id, &salt, &nonce, &text].concat())
    }

    fn try_open(&self, binding: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let (id_length, rest) = sealed.split_first()?;
        let (id, rest) = rest.split_at_checked(usize::from(*id_length))?;
        let (salt, rest) = rest.split_first_chunk::<SALT_LEN>()?;
        let (nonce, text) = rest.split_first_chunk::<NONCE_LEN>()?;
        let key = self.keys().find(|key| key.id.as_bytes() == id)?;
        let key = key.value_key(binding, salt).ok()?;
        let (nonce, mut text) = (Nonce::assume_unique_for_key(*nonce), text.to_vec());
        let plain = key.open_in_place(nonce, Aad::from(binding), &mut text).ok()?;
        Some(plain.to_vec())
    }
}

impl Sealer for KeyRing {
    #[expect(
        clippy::expect_used,
        reason = "fails only for a plain value of 64 GiB, which no caller has"
    )]
    fn seal(&self, purpose: SealPurpose, bound_to: &[u8], plain: &[u8]) -> Vec<u8> {
        self.try_seal(&binding(purpose, bound_to), plain)
            .expect("the value is small enough to be sealed")
    }

    fn open(&self, purpose: SealPurpose, bound_to: &[u8], sealed: &[u8]) -> Result<Vec<u8>, SealError> {
        self.try_open(&binding(purpose, bound_to), sealed)
            .ok_or(SealError)
    }

    #[expect(
        clippy::expect_used,
        reason = "fails only for a secret of another length than the hash's"
    )]
    fn derive(&self, purpose: SealPurpose, input: &[u8]) -> ([u8; 32], Vec<[u8; 32]>) {
        let info = binding(purpose, input);
        let secret = |key: &Key| key.secret(&info).expect("a secret has the length of the hash");
        (secret(&self.first), self.others.iter().map(secret).collect())
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

#[cfg(test)]
mod tests;
