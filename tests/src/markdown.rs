//! Code blocks of a Markdown page.

/// A fenced block of code (`CommonMark` §4.5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fence {
    /// The line of its opening fence, from 1.
    pub line: usize,
    /// The info string after the opening backticks.
    pub info: String,
    pub text: String,
    /// Whether only blank lines separate it from the previous block.
    pub follows: bool,
}

/// The fenced blocks, each without its indentation.
pub fn fences(markdown: &str) -> Vec<Fence> {
    let mut found: Vec<Fence> = Vec::new();
    let (mut open, mut follows) = (None, false);
    for (number, line) in markdown.lines().enumerate() {
        let text = line.trim_start();
        let ticks = text.bytes().take_while(|byte| *byte == b'`').count();
        match (&mut open, found.last_mut()) {
            (Some((indent, opening)), Some(fence)) => {
                if ticks >= *opening && text.trim_end().len() == ticks {
                    (open, follows) = (None, true);
                } else {
                    let rest = line.get(line.len().min(*indent)..).unwrap_or_default();
                    let own = if line.len() - text.len() < *indent {
                        text
                    } else {
                        rest
                    };
                    fence.text.push_str(own);
                    fence.text.push('\n');
                }
            }
            _ if ticks >= 3 => {
                open = Some((line.len() - text.len(), ticks));
                found.push(Fence {
                    line: number + 1,
                    info: text.trim_matches('`').trim().to_owned(),
                    text: String::new(),
                    follows,
                });
            }
            _ => follows &= text.is_empty(),
        }
    }
    found
}
