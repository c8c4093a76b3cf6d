//! What of a connection's bytes the HTTP library gets to see: one request at a time.
//!
//! The library reads ahead. Requests that came together it decodes before it has answered the first, and then writes every
//! answer as if it were the last one's: the answer to HEAD gets a body where a GET came behind it, `Connection: close` is not
//! said, and what follows a request that closes its connection is carried out all the same (RFC 9112 §9.3.2, §9.6). And it
//! takes nearly anything for a trailer. Here the bytes behind a request are kept back until its answer is sent, for ever where
//! that answer is the connection's last, and a chunked body has to be one to the letter (RFC 9112 §7.1).
//!
//! How long a body is the library's word alone, so that there are no two readings of a head.

use bytes::{Buf as _, BytesMut};

/// The most that is read ahead of a request's answer; only then it is seen that a client has gone.
const MOST_AHEAD: usize = 16 * 1024;

/// How long a request's body is, as the head says that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyLength {
    /// So many bytes.
    Known(u64),
    /// It comes in chunks.
    Chunked,
}

/// Where a request ends.
#[derive(Debug)]
enum Place {
    /// In a head; where in its line.
    Head(Line),
    /// Behind the end of what may be a head. The library looks at it once it was told that there is no more for now.
    Behind { told: bool },
    /// In a body, of which so much is left.
    Body(u64),
    /// In a chunked body.
    Chunks(Chunk),
    /// At its end.
    End,
    /// Beyond what can be read, and whether the library sees that for itself.
    Broken { seen: bool },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    Start,
    /// Behind a carriage return that began the line.
    Return,
    Within,
}

/// The places of a chunked body, named after what comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Chunk {
    FirstDigit,
    Digit(u64),
    Extension(u64),
    SizeFeed(u64),
    Data(u64),
    DataReturn,
    DataFeed,
    TrailerLine,
    Trailer,
    TrailerFeed,
    LastFeed,
    Over,
}

/// The bytes that are kept back, and why.
#[derive(Debug)]
pub(super) struct Intake {
    place: Place,
    ahead: BytesMut,
    /// Whether the other side sends no more.
    ended: bool,
}

impl Intake {
    pub(super) fn new() -> Self {
        Self {
            place: Place::Head(Line::Start),
            ahead: BytesMut::new(),
            ended: false,
        }
    }

    /// The library has read a head, and this is its body.
    pub(super) const fn body(&mut self, length: BodyLength) {
        self.place = match length {
            BodyLength::Known(0) => Place::End,
            BodyLength::Known(length) => Place::Body(length),
            BodyLength::Chunked => Place::Chunks(Chunk::FirstDigit),
        };
    }

    /// No request has begun: where the library has had its look, what it got was no head.
    pub(super) const fn goes_on(&mut self) {
        if matches!(self.place, Place::Behind { told: true }) {
            self.place = Place::Head(Line::Start);
        }
    }

    /// The library is told that there is no more for now. True where it should ask again once it has had its look.
    pub(super) fn pauses(&mut self) -> bool {
        let Place::Behind { told } = &mut self.place else {
            return false;
        };
        !std::mem::replace(told, true) && self.is_waiting()
    }

    /// The request was answered: the next one may come.
    pub(super) fn next(&mut self) {
        if matches!(self.place, Place::End) {
            self.place = Place::Head(Line::Start);
        }
    }

    /// Whether nothing may be handed on for now.
    pub(super) const fn is_shut(&self) -> bool {
        matches!(
            self.place,
            Place::Behind { .. } | Place::End | Place::Broken { .. }
        )
    }

    /// Whether the library is to be told that nothing more will come: the other side has ended and all is handed on, or the
    /// library would read on where nothing can be read.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.place, Place::Broken { seen: false }) || (self.ended && self.ahead.is_empty())
    }

    pub(super) const fn end(&mut self) {
        self.ended = true;
    }

    /// Whether there is something to look at once the place changes.
    pub(super) fn is_waiting(&self) -> bool {
        self.ended || !self.ahead.is_empty()
    }

    /// Whether nothing is under way: what comes next is a head's first byte.
    pub(super) fn is_idle(&self) -> bool {
        matches!(self.place, Place::Head(Line::Start)) && !self.is_waiting()
    }

    /// Whether more may be read ahead.
    pub(super) fn has_room(&self) -> bool {
        !self.ended && self.ahead.len() < MOST_AHEAD
    }

    pub(super) fn keep(&mut self, bytes: &[u8]) {
        self.ahead.extend_from_slice(bytes);
    }

    /// Takes what may be handed on of what was kept back, `most` bytes of it.
    pub(super) fn take(&mut self, most: usize) -> BytesMut {
        let mut ahead = std::mem::take(&mut self.ahead);
        let most = most.min(ahead.len());
        let admitted = self.admit(ahead.get(..most).unwrap_or_default());
        let taken = ahead.split_to(admitted);
        // Connections that idle hold nothing.
        if !ahead.is_empty() {
            self.ahead = ahead;
        }
        taken
    }

    /// Forgets what was kept back.
    pub(super) fn discard(&mut self) {
        self.ahead.advance(self.ahead.len());
    }

    /// How many of these bytes may be handed on.
    pub(super) fn admit(&mut self, bytes: &[u8]) -> usize {
        match &mut self.place {
            Place::Head(line) => {
                let (admitted, ends) = head(line, bytes);
                if ends {
                    self.place = Place::Behind { told: false };
                }
                admitted
            }
            Place::Body(left) => {
                let admitted = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                *left = left.saturating_sub(u64::try_from(admitted).unwrap_or(u64::MAX));
                if *left == 0 {
                    self.place = Place::End;
                }
                admitted
            }
            Place::Chunks(chunk) => {
                let (admitted, broken) = chunks(chunk, bytes);
                if broken {
                    let seen = !matches!(chunk, Chunk::TrailerLine | Chunk::Trailer);
                    self.place = Place::Broken { seen };
                } else if *chunk == Chunk::Over {
                    self.place = Place::End;
                }
                admitted
            }
            Place::Behind { .. } | Place::End | Place::Broken { .. } => 0,
        }
    }
}

/// How many bytes belong to a head, and whether an empty line ends it. An empty line that comes before a head counts as an end
/// too; who reads the head passes over it.
fn head(line: &mut Line, bytes: &[u8]) -> (usize, bool) {
    for (n, byte) in bytes.iter().enumerate() {
        *line = match (*line, byte) {
            (Line::Start | Line::Return, b'\n') => {
                *line = Line::Start;
                return (n.saturating_add(1), true);
            }
            (Line::Within, b'\n') => Line::Start,
            (Line::Start, b'\r') => Line::Return,
            _ => Line::Within,
        };
    }
    (bytes.len(), false)
}

/// How many bytes belong to a chunked body, and whether the last of them has no place in one.
fn chunks(chunk: &mut Chunk, mut bytes: &[u8]) -> (usize, bool) {
    let whole = bytes.len();
    loop {
        if let Chunk::Data(left) = chunk {
            let skipped = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
            *left = left.saturating_sub(u64::try_from(skipped).unwrap_or(u64::MAX));
            bytes = bytes.get(skipped..).unwrap_or_default();
            if *left > 0 {
                return (whole, false);
            }
            *chunk = Chunk::DataReturn;
        }
        let Some((byte, rest)) = bytes.split_first() else {
            return (whole, false);
        };
        bytes = rest;
        let admitted = whole.saturating_sub(rest.len());
        match step(*chunk, *byte) {
            Some(next) => *chunk = next,
            None => return (admitted, true),
        }
        if *chunk == Chunk::Over {
            return (admitted, false);
        }
    }
}

/// The place behind a byte; none where the byte cannot stand there.
fn step(chunk: Chunk, byte: u8) -> Option<Chunk> {
    Some(match (chunk, byte) {
        (Chunk::FirstDigit, digit) => Chunk::Digit(hexadecimal(digit)?),
        (Chunk::Digit(size) | Chunk::Extension(size), b'\r') => Chunk::SizeFeed(size),
        (Chunk::Digit(size), b';' | b' ' | b'\t') => Chunk::Extension(size),
        (Chunk::Digit(size), digit) => {
            let size = size.checked_mul(16)?;
            Chunk::Digit(size.checked_add(hexadecimal(digit)?)?)
        }
        (Chunk::Extension(size), byte) => {
            let _: () = text(byte)?;
            Chunk::Extension(size)
        }
        (Chunk::SizeFeed(0) | Chunk::TrailerFeed, b'\n') => Chunk::TrailerLine,
        (Chunk::SizeFeed(size), b'\n') => Chunk::Data(size),
        (Chunk::DataReturn, b'\r') => Chunk::DataFeed,
        (Chunk::DataFeed, b'\n') => Chunk::FirstDigit,
        (Chunk::TrailerLine, b'\r') => Chunk::LastFeed,
        (Chunk::Trailer, b'\r') => Chunk::TrailerFeed,
        (Chunk::TrailerLine | Chunk::Trailer, byte) => {
            let _: () = text(byte)?;
            Chunk::Trailer
        }
        (Chunk::LastFeed, b'\n') => Chunk::Over,
        _ => return None,
    })
}

fn hexadecimal(digit: u8) -> Option<u64> {
    char::from(digit).to_digit(16).map(u64::from)
}

/// A tab is the one control character that may stand in a line.
fn text(byte: u8) -> Option<()> {
    (byte == b'\t' || !byte.is_ascii_control()).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is handed on of `bytes`, in pieces of this size, and where that leads.
    fn chunked(bytes: &str, piece: usize) -> (usize, String) {
        let mut intake = Intake::new();
        intake.body(BodyLength::Chunked);
        let mut admitted = 0;
        for piece in bytes.as_bytes().chunks(piece) {
            admitted += intake.admit(piece);
            if intake.is_shut() {
                break;
            }
        }
        (admitted, format!("{:?}", intake.place))
    }

    #[test]
    fn a_chunked_body_ends_where_it_ends_in_pieces_of_any_size() {
        for body in [
            "0\r\n\r\n",
            "3\r\nabc\r\n0\r\n\r\n",
            "009;x=\"y\"\r\n\r\n\r\n0\r\n\r\n\r\n000\r\n\r\n",
            "1 \r\na\r\n0\r\nx-sum: 1\r\ny: 2\r\n\r\n",
        ] {
            for piece in 1..=body.len() + 3 {
                let (admitted, place) = chunked(&format!("{body}GET"), piece);
                assert_eq!(
                    (admitted, place.as_str()),
                    (body.len(), "End"),
                    "{body:?} by {piece}"
                );
            }
        }
    }

    #[test]
    fn what_is_no_chunked_body_is_broken() {
        for body in [
            "\r\n",
            " 1\r\n",
            "+1\r\n",
            "0x1\r\n",
            "-1\r\n",
            "g\r\n",
            "1\na",
            "1\r\r\n",
            "1;a\nb",
            "11111111111111111\r\n",
            "1\r\nab",
            "1\r\na\n",
            "0\r\n\n",
            "0\r\nx: 1\n",
            "0\r\nx\0",
            "0\r\n\ra",
        ] {
            for piece in 1..=body.len() {
                let place = chunked(body, piece).1;
                assert!(place.starts_with("Broken"), "{body:?} by {piece}: {place}");
            }
        }
    }

    #[test]
    fn nothing_behind_a_head_is_handed_on_before_it_was_judged() {
        for head in [
            "GET / HTTP/1.1\r\nhost: a\r\n\r\n",
            "GET / HTTP/1.1\nhost: a\n\n",
            "\r\n",
            "\n",
        ] {
            let bytes = format!("{head}GET /next");
            for piece in 1..bytes.len() {
                let mut intake = Intake::new();
                let mut admitted = 0;
                for piece in bytes.as_bytes().chunks(piece) {
                    admitted += intake.admit(piece);
                }
                assert_eq!(admitted, head.len(), "{head:?} by {piece}");
                assert!(intake.is_shut());
                intake.goes_on();
                assert!(intake.is_shut(), "nobody has looked yet");
                intake.pauses();
                intake.goes_on();
                assert!(!intake.is_shut(), "an empty line is no head");
            }
        }
    }

    #[test]
    fn a_body_ends_after_its_length() {
        let mut intake = Intake::new();
        intake.body(BodyLength::Known(5));
        assert_eq!(intake.admit(b"abc"), 3);
        intake.keep(b"deGET /");
        assert_eq!(&intake.take(100)[..], b"de");
        assert_eq!(intake.take(100).len(), 0);
        intake.next();
        assert_eq!(&intake.take(100)[..], b"GET /");
    }
}
