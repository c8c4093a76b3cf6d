//! Splits input that arrives in pieces into lines, and limits how much of a line is buffered.

/// The longest line, in bytes without its line end.
pub(super) const MAX_LINE_LENGTH: usize = 64 * 1024;

/// The most that is buffered of an incomplete line: its last byte may turn out to be the CR of a CRLF.
const MAX_BUFFERED: usize = MAX_LINE_LENGTH + 1;

/// Splits input into lines. A line ends with LF or CRLF; the last one may lack a line end.
#[derive(Default)]
pub(super) struct Lines {
    /// The number of complete lines.
    pub(super) ended: u64,
    /// The start of the incomplete line.
    buffered: Vec<u8>,
    /// The current line is longer than allowed; the rest of it is skipped.
    too_long: bool,
}

/// A line without its line end.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// Counted from 1.
    pub(super) number: u64,
    /// `None` if the line has more than [`MAX_LINE_LENGTH`] bytes.
    pub(super) text: Option<Vec<u8>>,
}

impl Lines {
    /// The next line that ends in `rest`; moves `rest` behind it. On `None`, all of `rest` is buffered.
    pub(super) fn next(&mut self, rest: &mut &[u8]) -> Option<Line> {
        let Some(at) = rest.iter().position(|byte| *byte == b'\n') else {
            self.buffer(std::mem::take(rest));
            return None;
        };
        let (text, behind) = rest.split_at_checked(at)?;
        *rest = behind.get(1..).unwrap_or_default();
        self.buffer(text);
        Some(self.end())
    }

    /// The last line, if the input ended without a line end.
    pub(super) fn last(&mut self) -> Option<Line> {
        (!self.buffered.is_empty() || self.too_long).then(|| self.end())
    }

    fn buffer(&mut self, more: &[u8]) {
        self.too_long |= self.buffered.len().saturating_add(more.len()) > MAX_BUFFERED;
        if self.too_long {
            self.buffered.clear();
        } else {
            self.buffered.extend_from_slice(more);
        }
    }

    fn end(&mut self) -> Line {
        self.ended += 1;
        let mut text = std::mem::take(&mut self.buffered);
        text.pop_if(|last| *last == b'\r');
        let fits = !std::mem::take(&mut self.too_long) && text.len() <= MAX_LINE_LENGTH;
        Line {
            number: self.ended,
            text: fits.then_some(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of an input that arrives in these pieces; `None` for one that is too long.
    fn cut(pieces: &[&[u8]]) -> Vec<(u64, Option<Vec<u8>>)> {
        let mut lines = Lines::default();
        let mut all = Vec::new();
        for piece in pieces {
            let mut rest = *piece;
            while let Some(line) = lines.next(&mut rest) {
                all.push((line.number, line.text));
            }
            assert!(rest.is_empty());
        }
        all.extend(lines.last().map(|line| (line.number, line.text)));
        assert_eq!(lines.ended, u64::try_from(all.len()).unwrap());
        all
    }

    #[test]
    fn the_line_limit_does_not_count_the_line_ending() {
        for end in ["", "\n", "\r\n", "\nx", "\r"] {
            for (length, fits) in [
                (MAX_LINE_LENGTH, true),
                (MAX_LINE_LENGTH + 1, false),
                (MAX_LINE_LENGTH * 3, false),
            ] {
                let input = format!("{}{end}", "x".repeat(length));
                for size in [7, 4096, input.len()] {
                    let pieces: Vec<_> = input.as_bytes().chunks(size).collect();
                    let lines = cut(&pieces);
                    assert_eq!(lines[0].1.is_some(), fits, "{length} {end:?} {size}");
                    assert_eq!(lines.len(), if end.ends_with('x') { 2 } else { 1 });
                }
            }
        }
    }

    #[test]
    fn at_most_one_line_is_buffered() {
        let mut lines = Lines::default();
        for _ in 0..1_000 {
            assert_eq!(lines.next(&mut [b'x'; 4096].as_slice()), None);
            assert!(lines.buffered.capacity() <= 2 * MAX_BUFFERED);
        }
    }
}
