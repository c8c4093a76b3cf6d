//! Fuzz inputs for parsers of untrusted bytes: mutated samples of valid input.
//!
//! A mutation works on pieces: runs of letters and digits, or single other characters. So most changes are
//! where the parser splits its input. [`mutated`] is a `proptest` strategy, which also shrinks a failing
//! input.

use std::env;
use std::ops::Range;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, RngSeed, TestRunner};

/// Text that often breaks parsers of any format.
const AWKWARD: &str = "\0 \r\n \n \t \" \\ ' % %00 %2 %ff %C5%BC + & && = ; , : / // ? # @ \\u0000 \\ud800 \\udc00\\ud800 { } [ ] < > <fuzz> \
    &amp; null true 0 -0 -1 1e3 1.0 00 1e999 2147483647 2147483648 9223372036854775807 9223372036854775808 -9223372036854775809 \
    18446744073709551616 ż \u{202e} \u{1f980} a\u{301} \u{2028} \u{ff0f} İ \u{e0001} \u{feff} \u{7f}";

const INVALID_UTF8: [&[u8]; 3] = [b"\xff", b"\xc0\x80", b"\xed\xa0\x80"];

/// Maximum length of an input.
const MAX_LENGTH: usize = 16 * 1024;

/// A mutation of some pieces.
#[derive(Debug, Clone)]
enum Change {
    Replaced(Vec<u8>),
    Repeated(usize),
    FirstByte(u8),
    Uppercase,
    Lowercase,
    PercentEncoded,
    JsonEscaped,
}

/// A runner that generates the same inputs in every run, unless `PROPTEST_RNG_SEED` is set.
pub fn runner() -> TestRunner {
    let mut config = Config {
        failure_persistence: None,
        ..Config::default()
    };
    if config.rng_seed == RngSeed::Random {
        config.rng_seed = RngSeed::Fixed(17);
    }
    if env::var_os("PROPTEST_CASES").is_none() {
        config.cases = 1000;
    }
    TestRunner::new(config)
}

/// A sample with up to seven mutations, at most 16 KiB long. Mutations also insert pieces of other samples.
pub fn mutated<S: AsRef<[u8]>>(samples: impl IntoIterator<Item = S>) -> impl Strategy<Value = Vec<u8>> {
    let samples: Vec<Vec<u8>> = samples
        .into_iter()
        .map(|sample| sample.as_ref().to_vec())
        .collect();
    let pieces = prop_oneof![3 => 0..2_usize, 1 => 2..30_usize];
    let mutation = (any::<Index>(), pieces, change(samples.clone()));
    (select(samples), vec(mutation, 0..8)).prop_map(|(mut input, mutations)| {
        for (from, pieces, change) in mutations {
            let part = stretch(&input, from, pieces);
            let changed = change.of(input.get(part.clone()).unwrap_or_default());
            input.splice(part, changed);
            input.truncate(MAX_LENGTH);
        }
        input
    })
}

fn change(samples: Vec<Vec<u8>>) -> impl Strategy<Value = Change> {
    let words = AWKWARD
        .split(' ')
        .chain([" "])
        .map(str::as_bytes)
        .chain(INVALID_UTF8);
    let words: Vec<_> = words.map(<[u8]>::to_vec).collect();
    let number =
        (any::<i64>(), 0..64_u32).prop_map(|(number, shift)| (number >> shift).to_string().into_bytes());
    let of_a_sample = (select(samples), any::<Index>(), 1..12_usize).prop_map(|(sample, from, pieces)| {
        let part = sample.get(stretch(&sample, from, pieces));
        part.unwrap_or_default().to_vec()
    });
    let other = prop_oneof![2 => Just(Vec::new()), 4 => select(words), 1 => number, 1 => vec(any::<u8>(), 1..5), 4 => of_a_sample];
    prop_oneof![
        12 => other.prop_map(Change::Replaced),
        1 => (0..11_u32).prop_map(|power| Change::Repeated(1 << power)),
        1 => any::<u8>().prop_map(Change::FirstByte),
        1 => select(vec![Change::Uppercase, Change::Lowercase, Change::PercentEncoded, Change::JsonEscaped]),
    ]
}

impl Change {
    fn of(self, part: &[u8]) -> Vec<u8> {
        match self {
            Self::Replaced(other) => other,
            Self::Repeated(times) => part.repeat(times.min(MAX_LENGTH / part.len().max(1))),
            Self::FirstByte(byte) => [&[byte], part.get(1..).unwrap_or_default()].concat(),
            Self::Uppercase => part.to_ascii_uppercase(),
            Self::Lowercase => part.to_ascii_lowercase(),
            Self::PercentEncoded => part
                .iter()
                .flat_map(|byte| format!("%{byte:02x}").into_bytes())
                .collect(),
            Self::JsonEscaped => part
                .iter()
                .flat_map(|byte| format!("\\u{byte:04x}").into_bytes())
                .collect(),
        }
    }
}

/// The range of `pieces` pieces from one of the boundaries.
fn stretch(input: &[u8], from: Index, pieces: usize) -> Range<usize> {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || !byte.is_ascii();
    let within = input.windows(2).enumerate().filter_map(|(at, two)| match two {
        [one, other] if is_word(one) && is_word(other) => None,
        _ => Some(at + 1),
    });
    let joints: Vec<usize> = [0].into_iter().chain(within).chain([input.len()]).collect();
    let from = from.index(joints.len());
    let to = joints.get(from + pieces).copied().unwrap_or(input.len());
    joints.get(from).map_or(0..0, |from| *from..to)
}
