//! Values that a key ring opens, and those that it rejects.

use proptest::{prelude::*, sample::Index};

use super::*;

/// 32 bytes that are another key for each `byte`, and none that is refused.
fn bytes(byte: u8) -> [u8; 32] {
    let mut bytes = [byte; 32];
    bytes[31] ^= 0xff;
    bytes
}

fn key(id: &str, byte: u8) -> SecretString {
    Key::format(id, &bytes(byte)).into()
}

fn ring(keys: &[(&str, u8)]) -> KeyRing {
    let keys = keys.iter().map(|(id, byte)| key(id, *byte)).collect::<Vec<_>>();
    KeyRing::parse(&keys).unwrap()
}

const FOR: SealPurpose = SealPurpose::Cursor;

proptest! {
    #[test]
    fn a_sealed_value_opens_only_for_its_binding(bound_to: Vec<u8>, other: Vec<u8>, plain: Vec<u8>) {
        prop_assume!(bound_to != other);
        let ring = ring(&[("a", 1)]);
        let sealed = ring.seal(FOR, &bound_to, &plain);
        prop_assert_eq!(ring.open(FOR, &bound_to, &sealed), Ok(plain));
        prop_assert_eq!(ring.open(FOR, &other, &sealed), Err(SealError));
    }

    #[test]
    fn a_changed_bit_another_length_and_noise_are_refused(plain: Vec<u8>, place: Index, bit in 0..8, noise in prop::collection::vec(any::<u8>(), 1..20)) {
        let ring = ring(&[("a", 1), ("c", 2)]);
        let sealed = ring.seal(FOR, b"seller", &plain);
        let place = place.index(sealed.len());
        let mut changed = sealed.clone();
        changed[place] ^= 1_u8 << bit;
        for other in [changed, sealed[..place].to_vec(), [sealed, noise.clone()].concat(), noise] {
            prop_assert_eq!(ring.open(FOR, b"seller", &other), Err(SealError));
        }
    }
}

#[test]
fn a_values_key_is_derived_from_its_binding() {
    let ring = ring(&[("a", 1)]);
    let sealed = ring.seal(FOR, b"", b"plain");
    let (salt, rest) = sealed[2..].split_first_chunk::<SALT_LEN>().unwrap();
    let (nonce, text) = rest.split_first_chunk::<NONCE_LEN>().unwrap();
    let own = binding(FOR, b"");
    let opens_with_key_for = |derived_for: &[u8]| {
        let key = ring.first.value_key(derived_for, salt).unwrap();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        key.open_in_place(nonce, Aad::from(&own), &mut text.to_vec())
            .is_ok()
    };
    assert!(opens_with_key_for(&own));
    assert!(!opens_with_key_for(&binding(SealPurpose::Flash, b"")));
    assert!(!opens_with_key_for(&binding(FOR, b"another")));
}

/// Values in databases were sealed by earlier releases. This one was made by another implementation of the
/// format.
#[test]
fn the_format_does_not_change() {
    let ring = ring(&[("a", 1)]);
    let sealed = STANDARD
        .decode("AWEAAQIDBAUGBwgJCgsMDQ4PZGVmZ2hpamtsbW5vLUDDRDcoHOoTnKugTjwM4fuMfuym")
        .unwrap();
    assert_eq!(ring.open(FOR, b"seller", &sealed), Ok(b"plain".to_vec()));
}

#[test]
fn keys_rotate() {
    let (before, during, after) = (
        ring(&[("old", 1)]),
        ring(&[("new", 2), ("old", 1)]),
        ring(&[("new", 2)]),
    );
    let old = before.seal(FOR, b"", b"x");
    let new = during.seal(FOR, b"", b"x");
    assert_eq!(during.open(FOR, b"", &old), Ok(b"x".to_vec()));
    assert_eq!(during.open(FOR, b"", &new), Ok(b"x".to_vec()));
    assert_eq!(after.open(FOR, b"", &new), Ok(b"x".to_vec()));
    assert_eq!(after.open(FOR, b"", &old), Err(SealError));
    assert_eq!(before.open(FOR, b"", &new), Err(SealError));
    let same_id = ring(&[("new", 3)]);
    assert_eq!(same_id.open(FOR, b"", &new), Err(SealError));
}

#[test]
fn each_sealed_value_is_different_and_begins_with_the_id_of_its_key() {
    let ring = ring(&[("new", 2), ("old", 1)]);
    assert!(ring.seal(FOR, b"", b"x").starts_with(b"\x03new"));
    assert_ne!(ring.seal(FOR, b"", b"x"), ring.seal(FOR, b"", b"x"));
    assert_eq!(ring.first_id(), "new");
    assert!(ring.ids().eq(["new", "old"]));
}

#[test]
fn lists_of_keys_that_cannot_be_used() {
    let refusal = |keys: &[&str]| {
        let keys = keys
            .iter()
            .map(|key| SecretString::from(*key))
            .collect::<Vec<_>>();
        KeyRing::parse(&keys).unwrap_err()
    };
    let good = Key::format("good", &bytes(7));
    let short = Key::format("b", &bytes(7)).replace('=', "");
    let long_id = Key::format(&"x".repeat(17), &bytes(7));
    assert_eq!(refusal(&[]), KeyError::None);
    assert_eq!(refusal(&["nonsense"]), KeyError::Form(1));
    assert_eq!(refusal(&[&good, ":AAAA"]), KeyError::Id(2));
    assert_eq!(refusal(&[&long_id]), KeyError::Id(1));
    assert_eq!(refusal(&[&good, "b:AAAA"]), KeyError::Bytes(2));
    assert_eq!(refusal(&[&good, &short]), KeyError::Bytes(2));
    assert_eq!(refusal(&[&good, &good]), KeyError::Repeated(2));
    let counted = |from: u8| std::array::from_fn(|n| from.wrapping_add(u8::try_from(n).unwrap()));
    for guessable in [
        [0; 32],
        [b'A'; 32],
        [255; 32],
        counted(0),
        counted(1),
        counted(240),
    ] {
        let written = Key::format("b", &guessable);
        let refused = refusal(&[&good, &written]);
        assert_eq!(refused, KeyError::Guessable(2));
        assert!(!refused.to_string().contains(&written[2..]), "{refused}");
    }
}

#[test]
fn a_generated_key_can_be_used_and_is_never_printed() {
    let texts = [(); 2].map(|()| KeyRing::generate(&SystemRandomness::new()));
    let secrets = texts
        .clone()
        .map(|text| text.split_once(':').unwrap().1.to_owned());
    let ring = KeyRing::parse(&texts.map(SecretString::from)).unwrap();
    assert_ne!(secrets[0], secrets[1]);
    assert!(!format!("{ring:?}").contains(&secrets[0]));
}

#[test]
fn a_derived_secret_is_made_of_key_purpose_and_input_alone() {
    let (before, after) = (ring(&[("old", 1)]), ring(&[("new", 2), ("old", 1)]));
    let derive = |ring: &KeyRing, purpose, input: &[u8]| ring.derive(purpose, input);
    let (old, none) = derive(&before, SealPurpose::RefreshedPair, b"x");
    assert_eq!(
        (old, none.len()),
        (before.derive(SealPurpose::RefreshedPair, b"x").0, 0)
    );
    let (new, others) = derive(&after, SealPurpose::RefreshedPair, b"x");
    assert_eq!(others, [old]);
    assert_ne!(new, old);
    assert_ne!(derive(&before, SealPurpose::RefreshedPair, b"y").0, old);
    assert_ne!(derive(&before, SealPurpose::Cursor, b"x").0, old);
}
