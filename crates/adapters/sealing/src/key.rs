//! A key as the configuration writes it.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ring::{
    aead::{AES_256_GCM, LessSafeKey, UnboundKey},
    error::Unspecified,
    hkdf::{HKDF_SHA256, Prk, Salt},
};

/// Longest id of a key, in bytes: it goes into every sealed value.
const ID_MAX: usize = 16;
const SALT: &[u8] = b"seller-api sealing";

/// Why a list of keys cannot be used. Names keys by their place in the list, from 1, and never prints one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The list is empty.
    #[error("there must be at least one key; `seller-api admin keys generate` makes one")]
    None,
    /// Not of the form `id:key`.
    #[error(
        "key {place} must be written as `<id>:<base64 of 32 bytes>`; `seller-api admin keys generate` makes one"
    )]
    Form {
        /// Its place in the list.
        place: usize,
    },
    /// The part before the colon is no id.
    #[error("the id of key {place} must be 1 to {ID_MAX} ASCII letters, digits, '-' or '_'")]
    Id {
        /// Its place in the list.
        place: usize,
    },
    /// The part after the colon is no key.
    #[error(
        "key {place} must be the base64 of 32 random bytes, with padding; `seller-api admin keys generate` makes one"
    )]
    Bytes {
        /// Its place in the list.
        place: usize,
    },
    /// The key is one that anybody can guess.
    #[error(
        "key {place} is no secret: its bytes are all alike or count up, as in examples; \
         `seller-api admin keys generate` makes one"
    )]
    Guessable {
        /// Its place in the list.
        place: usize,
    },
    /// Two keys have the same id.
    #[error(
        "the id of key {place} is that of an earlier key too: a sealed value could not tell which one it needs"
    )]
    Repeated {
        /// The place of the later one.
        place: usize,
    },
}

/// One key of the ring.
pub(crate) struct Key {
    pub(crate) id: String,
    root: Prk,
}

impl Key {
    /// Reads the key at `place` of the list.
    pub(crate) fn parse(text: &str, place: usize) -> Result<Self, KeyError> {
        let (id, bytes) = text.trim().split_once(':').ok_or(KeyError::Form { place })?;
        let in_id = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if id.is_empty() || id.len() > ID_MAX || !id.bytes().all(in_id) {
            return Err(KeyError::Id { place });
        }
        let bytes = STANDARD
            .decode(bytes)
            .ok()
            .filter(|bytes| bytes.len() == 32)
            .ok_or(KeyError::Bytes { place })?;
        if is_guessable(&bytes) {
            return Err(KeyError::Guessable { place });
        }
        let root = Salt::new(HKDF_SHA256, SALT).extract(&bytes);
        Ok(Self {
            id: id.to_owned(),
            root,
        })
    }

    /// Writes a key.
    pub(crate) fn write(id: &str, bytes: &[u8; 32]) -> String {
        format!("{id}:{}", STANDARD.encode(bytes))
    }

    /// The key of one sealed value (HKDF-Expand, RFC 5869 §2.3). What goes in before `salt` is length-prefixed, so that no
    /// two contexts are written alike.
    pub(crate) fn derive(
        &self,
        purpose: &str,
        bound_to: &[u8],
        salt: &[u8],
    ) -> Result<LessSafeKey, Unspecified> {
        let (id, purpose) = (prefixed(self.id.as_bytes()), prefixed(purpose.as_bytes()));
        let bound_to = prefixed(bound_to);
        let info = [id.as_slice(), purpose.as_slice(), bound_to.as_slice(), salt];
        let okm = self.root.expand(&info, &AES_256_GCM)?;
        Ok(LessSafeKey::new(UnboundKey::from(okm)))
    }
}

/// True for bytes that people write where a secret should stand: all of them alike, or each one more than that before.
fn is_guessable(bytes: &[u8]) -> bool {
    let steps_by = |step: u8| {
        let mut pairs = bytes.iter().zip(bytes.iter().skip(1));
        pairs.all(|(one, next)| one.wrapping_add(step) == *next)
    };
    steps_by(0) || steps_by(1)
}

/// The bytes after their length in eight bytes.
pub(crate) fn prefixed(bytes: &[u8]) -> Vec<u8> {
    let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    [&length.to_be_bytes(), bytes].concat()
}
