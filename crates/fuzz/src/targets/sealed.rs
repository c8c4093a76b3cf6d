//! Sealed values: nothing opens but what was sealed with one of the keys, for that use, to the last bit.

use std::sync::{Arc, OnceLock};

use adapter_sealing::KeyRing;
use kernel::{Purpose, Sealer};
use secrecy::SecretString;

use crate::Target;

pub(crate) const TARGET: Target = Target {
    name: "sealed",
    run,
    seeds: || {
        vec![
            SEALED.to_vec(),
            SEALED[..46].to_vec(),
            b"\x02k1".to_vec(),
            Vec::new(),
        ]
    },
    words: &["\u{2}k1", "\u{2}k2", "\u{0}"],
    grows: &[("\u{2}k1", "0", ""), ("\u{ff}", "0", "")],
};

/// What the cursors of the tests are sealed with; it seals nothing else anywhere.
const KEYS: [&str; 2] = [
    "k1:EN+PpSWeCD3eN4Kb2QUtaJV/gDImyiitlZNizwYmEgw=",
    "k2:T1FlhNM6MiDJ1MS2FpY91LrLMXpDbGzfXzgaecJYiLs=",
];

/// What was sealed.
const PLAIN: &[u8] = b"a place in a list";
/// For which list.
const LIST: &[u8] = b"offers";
/// What came of it.
const SEALED: &[u8] = include_bytes!("sealed/cursor.bin");

/// A ring of two keys, always the same.
pub(crate) fn ring() -> &'static Arc<KeyRing> {
    static RING: OnceLock<Arc<KeyRing>> = OnceLock::new();
    RING.get_or_init(|| Arc::new(KeyRing::parse(&KEYS.map(SecretString::from)).expect("good keys")))
}

fn run(bytes: &[u8]) {
    match ring().open(Purpose::Cursor, LIST, bytes) {
        Ok(plain) => {
            assert_eq!(bytes, SEALED, "forged");
            assert_eq!(plain, PLAIN);
        }
        Err(_) => assert_ne!(
            bytes, SEALED,
            "what was sealed does not open; renew sealed/cursor.bin if the form has changed"
        ),
    }
    for (purpose, list) in [
        (Purpose::Cursor, &b"orders"[..]),
        (Purpose::ConsentTicket, LIST),
        (Purpose::Cursor, b""),
    ] {
        assert!(
            ring().open(purpose, list, bytes).is_err(),
            "it opens for another use"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Prints a value to put into `sealed/cursor.bin`, in hexadecimal digits.
    #[test]
    #[ignore = "it makes the seed anew"]
    fn sealed_anew() {
        let sealed = ring().seal(Purpose::Cursor, LIST, PLAIN);
        panic!("{sealed:02x?}");
    }
}
