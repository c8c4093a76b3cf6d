//! Inputs made of other inputs: bytes, words and numbers changed, pieces moved, doubled, left out, taken from elsewhere.
//!
//! A piece is a run of letters and digits, or one other character, so that what a reader takes apart is mostly changed at its
//! joints. What comes of a seed is decided by the generator's number alone.

use fastrand::Rng;

/// What readers stumble over, whatever they read.
const AWKWARD: &[&[u8]] = &[
    b"\0",
    b"\r\n",
    b"\n",
    b"\t",
    b" ",
    b"\"",
    b"\\",
    b"'",
    b"%",
    b"%00",
    b"%2",
    b"%ff",
    b"%C5%BC",
    b"+",
    b"&",
    b"=",
    b";",
    b",",
    b":",
    b"/",
    b"//",
    b"\\u0000",
    b"\\ud800",
    b"\\udc00\\ud800",
    b"{",
    b"}",
    b"[",
    b"]",
    b"<",
    b">",
    b"<fuzz>",
    b"&amp;",
    b"null",
    b"true",
    b"0",
    b"-0",
    b"-1",
    b"1e3",
    b"1.0",
    b"2147483647",
    b"2147483648",
    b"9223372036854775807",
    b"9223372036854775808",
    b"-9223372036854775809",
    b"1e999",
    b"00",
    b"\xef\xbb\xbf",
    b"\xff",
    b"\xc0\x80",
    b"\xed\xa0\x80",
    "ż".as_bytes(),
    "\u{202e}".as_bytes(),
    "\u{1f980}".as_bytes(),
    "a\u{301}".as_bytes(),
    "\u{2028}".as_bytes(),
    "\u{ff0f}".as_bytes(),
    "İ".as_bytes(),
    "\u{e0001}".as_bytes(),
];

/// The longest input that is made.
const LONGEST: usize = 16 * 1024;

/// A source of inputs.
#[derive(Debug)]
pub struct Mutator {
    chance: Rng,
    seeds: Vec<Vec<u8>>,
    words: &'static [&'static str],
}

impl Mutator {
    /// One whose every input follows from `number`.
    pub fn new(number: u64, seeds: Vec<Vec<u8>>, words: &'static [&'static str]) -> Self {
        let chance = Rng::with_seed(number);
        Self { chance, seeds, words }
    }

    /// The next input.
    pub fn next_input(&mut self) -> Vec<u8> {
        let mut input = self.seed();
        // Mostly a few changes, so that much of the input still means something.
        for _ in 0..=self.chance.u32(..8).min(self.chance.u32(..8)) {
            self.change(&mut input);
        }
        input.truncate(LONGEST);
        input
    }

    fn seed(&mut self) -> Vec<u8> {
        if self.seeds.is_empty() {
            return Vec::new();
        }
        self.seeds[self.chance.usize(..self.seeds.len())].clone()
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        match self.chance.u8(..14) {
            0 => self.flip(input),
            1 => self.put_byte(input),
            2 | 3 => {
                let (at, word) = (self.joint(input), self.word());
                input.splice(at..at, word);
            }
            4..=6 => {
                let (from, to) = self.piece(input);
                let word = self.word();
                input.splice(from..to, word);
            }
            7 => {
                let (from, to) = self.piece(input);
                input.drain(from..to);
            }
            8 => {
                let (from, to) = self.stretch(input);
                let (at, copy) = (self.joint(input), input[from..to].to_vec());
                input.splice(at..at, copy);
            }
            9 => {
                let (from, to) = self.stretch(input);
                input.drain(from..to);
            }
            10 => {
                let other = self.seed();
                let (from, to) = self.stretch(&other);
                let (at, end) = self.stretch(input);
                input.splice(at..end, other[from..to].to_vec());
            }
            11 => self.repeat(input),
            12 => self.spell(input),
            _ => {
                let (from, to) = self.piece(input);
                let number = self.number();
                input.splice(from..to, number.into_bytes());
            }
        }
    }

    fn flip(&mut self, input: &mut [u8]) {
        if !input.is_empty() {
            let at = self.chance.usize(..input.len());
            input[at] ^= 1 << self.chance.u32(..8);
        }
    }

    fn put_byte(&mut self, input: &mut [u8]) {
        if !input.is_empty() {
            let at = self.chance.usize(..input.len());
            input[at] = self.chance.u8(..);
        }
    }

    /// A piece many times over.
    fn repeat(&mut self, input: &mut Vec<u8>) {
        let (from, to) = self.stretch(input);
        let most = LONGEST.saturating_sub(input.len()) / (to - from).max(1);
        let often = 1 << self.chance.u32(..11);
        let times = self.chance.usize(..=most.min(often));
        let copies = input[from..to].repeat(times);
        input.splice(to..to, copies);
    }

    /// The same piece in another spelling: another case, percent-encoded, escaped as JSON has it.
    fn spell(&mut self, input: &mut Vec<u8>) {
        let (from, to) = self.piece(input);
        let kind = self.chance.u8(..4);
        let spelt: Vec<u8> = input[from..to]
            .iter()
            .flat_map(|byte| match kind {
                0 => vec![byte.to_ascii_uppercase()],
                1 => format!("%{byte:02x}").into_bytes(),
                2 => format!("\\u{byte:04x}").into_bytes(),
                _ => vec![byte.to_ascii_lowercase()],
            })
            .collect();
        input.splice(from..to, spelt);
    }

    fn number(&mut self) -> String {
        let number = self.chance.i64(..) >> self.chance.u32(..64);
        match self.chance.u8(..4) {
            0 => format!("{number:x}"),
            1 => format!("{number}.{}", self.chance.u32(..)),
            _ => number.to_string(),
        }
    }

    fn word(&mut self) -> Vec<u8> {
        let place = self.chance.usize(..AWKWARD.len() + 2 * self.words.len());
        match AWKWARD.get(place) {
            Some(word) => word.to_vec(),
            None => self.words[(place - AWKWARD.len()) / 2].as_bytes().to_vec(),
        }
    }

    /// Where pieces meet, or the ends.
    fn joint(&mut self, input: &[u8]) -> usize {
        let (from, to) = self.piece(input);
        if self.chance.bool() { from } else { to }
    }

    fn piece(&mut self, input: &[u8]) -> (usize, usize) {
        if input.is_empty() {
            return (0, 0);
        }
        let at = self.chance.usize(..input.len());
        let is_word = |at: usize| input[at].is_ascii_alphanumeric() || input[at] >= 0x80;
        if !is_word(at) {
            return (at, at + 1);
        }
        let from = (0..at).rev().take_while(|at| is_word(*at)).last().unwrap_or(at);
        let to = (at..input.len())
            .take_while(|at| is_word(*at))
            .last()
            .unwrap_or(at);
        (from, to + 1)
    }

    /// From one joint to another one.
    fn stretch(&mut self, input: &[u8]) -> (usize, usize) {
        let (one, other) = (self.joint(input), self.joint(input));
        (one.min(other), one.max(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_gives_the_same_inputs_again() {
        let inputs = |number| {
            let mut mutator = Mutator::new(number, vec![b"{\"a\": 1}".to_vec(), Vec::new()], &["price"]);
            (0..200).map(|_| mutator.next_input()).collect::<Vec<_>>()
        };
        assert_eq!(inputs(7), inputs(7));
        assert_ne!(inputs(7), inputs(8));
        assert!(inputs(7).iter().all(|input| input.len() <= LONGEST));
    }
}
