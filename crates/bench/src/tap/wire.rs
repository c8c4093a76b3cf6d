//! PostgreSQL's messages (PostgreSQL documentation, "Frontend/Backend Protocol"), as far as they tell what is asked and
//! when an answer is waited for.

use std::collections::HashMap;

/// Cuts one direction's bytes into messages.
#[derive(Debug)]
pub(super) struct Messages {
    buffer: Vec<u8>,
    /// A client's first message has no type.
    typed: bool,
}

impl Messages {
    /// Those of a client.
    pub(super) fn of_client() -> Self {
        Self {
            buffer: Vec::new(),
            typed: false,
        }
    }

    /// Those of a server.
    pub(super) fn of_server() -> Self {
        Self {
            buffer: Vec::new(),
            typed: true,
        }
    }

    /// Calls `each` with type and content of every message that `bytes` complete.
    pub(super) fn feed(&mut self, bytes: &[u8], mut each: impl FnMut(u8, &[u8])) {
        self.buffer.extend_from_slice(bytes);
        let mut done = 0;
        while let Some((kind, content, length)) = self.buffer.get(done..).and_then(|rest| self.first(rest)) {
            if self.typed {
                each(kind, content);
            }
            self.typed = true;
            done += length;
        }
        self.buffer.drain(..done);
    }

    fn first<'b>(&self, bytes: &'b [u8]) -> Option<(u8, &'b [u8], usize)> {
        let before = usize::from(self.typed);
        let length = bytes.get(before..before + 4)?.try_into().ok()?;
        let length = before + usize::try_from(u32::from_be_bytes(length)).ok()?;
        Some((*bytes.first()?, bytes.get(before + 4..length)?, length))
    }
}

/// What one connection has under way.
#[derive(Debug, Default)]
pub(super) struct Conversation {
    unanswered: u64,
    statements: HashMap<Vec<u8>, String>,
    portals: HashMap<Vec<u8>, Vec<u8>>,
}

/// What a client's message does.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    /// Statements that are executed.
    pub(super) statements: Vec<String>,
    /// Whether an answer is waited for that nothing before it was waited for: a round trip begins.
    pub(super) round_trip: bool,
}

impl Conversation {
    /// Takes a client's message in.
    pub(super) fn ask(&mut self, kind: u8, content: &[u8]) -> Asked {
        let mut asked = Asked::default();
        let mut parts = content.split(|byte| *byte == 0);
        let mut next = || parts.next().unwrap_or_default();
        match kind {
            b'P' => {
                let (name, sql) = (next().to_vec(), text(next()));
                self.statements.insert(name, sql);
            }
            b'B' => {
                let (portal, statement) = (next().to_vec(), next().to_vec());
                self.portals.insert(portal, statement);
            }
            b'E' => {
                let statement = self.portals.get(next());
                let sql = statement.and_then(|statement| self.statements.get(statement));
                asked.statements.extend(sql.cloned());
            }
            b'Q' => {
                let sql = text(next());
                let several = sql.split(';').map(str::trim).filter(|sql| !sql.is_empty());
                asked.statements.extend(several.map(str::to_owned));
                asked.round_trip = self.waits();
            }
            // Sync.
            b'S' => asked.round_trip = self.waits(),
            _ => {}
        }
        asked
    }

    /// Takes the type of a server's message in.
    pub(super) fn answer(&mut self, kind: u8) {
        // ReadyForQuery. The first one follows no question.
        if kind == b'Z' {
            self.unanswered = self.unanswered.saturating_sub(1);
        }
    }

    fn waits(&mut self) -> bool {
        self.unanswered += 1;
        self.unanswered == 1
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u8, content: &[u8]) -> Vec<u8> {
        let length = u32::try_from(content.len() + 4).unwrap();
        [&[kind], length.to_be_bytes().as_slice(), content].concat()
    }

    #[test]
    fn messages_are_cut_wherever_the_bytes_are() {
        let startup = message(0, b"\0\x03\0\0user\0x\0\0");
        let bytes = [&startup[1..], &message(b'Q', b"select 1\0"), &message(b'X', b"")].concat();
        for cut in 0..bytes.len() {
            let mut messages = Messages::of_client();
            let mut seen = Vec::new();
            for part in [&bytes[..cut], &bytes[cut..]] {
                messages.feed(part, |kind, content| seen.push((kind, content.to_vec())));
            }
            assert_eq!(
                seen,
                [(b'Q', b"select 1\0".to_vec()), (b'X', Vec::new())],
                "{cut}"
            );
        }
    }

    #[test]
    fn what_is_sent_together_is_one_round_trip() {
        let mut conversation = Conversation::default();
        conversation.answer(b'Z');
        assert!(conversation.ask(b'Q', b"begin\0").round_trip);
        conversation.ask(b'P', b"s1\0select $1\0\0\0");
        conversation.ask(b'B', b"\0s1\0\0\0\0\0\0\0");
        assert_eq!(conversation.ask(b'E', b"\0\0\0\0\0").statements, ["select $1"]);
        assert!(!conversation.ask(b'S', b"").round_trip);
        conversation.answer(b'Z');
        conversation.answer(b'Z');
        let last = conversation.ask(b'Q', b"select 1; commit\0");
        assert!(last.round_trip);
        assert_eq!(last.statements, ["select 1", "commit"]);
    }
}
