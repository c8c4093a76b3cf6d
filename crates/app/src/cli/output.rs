//! What a command prints: its result on stdout, what went wrong on stderr.

use std::{
    fmt::Display,
    io::{self, Write as _},
};

use crate::error_chain;

/// The result could not be printed.
#[derive(Debug, thiserror::Error)]
#[error("cannot print the result")]
pub(crate) struct Unread(#[source] io::Error);

impl Unread {
    /// True when whoever read it has had enough, as `head` does: that is no failure.
    pub(super) fn is_enough(&self) -> bool {
        self.0.kind() == io::ErrorKind::BrokenPipe
    }
}

/// Prints a line, or several, on stdout.
pub(crate) fn print(text: impl Display) -> Result<(), Unread> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).map_err(Unread)
}

/// Says on stderr how a long command is coming along. That nobody reads it is no reason to fail.
pub(crate) fn note(text: impl Display) {
    drop(writeln!(io::stderr(), "{text}"));
}

/// Says on stderr why a command failed, with the causes.
pub(crate) fn complain(error: &anyhow::Error) {
    note(format_args!(
        "seller-api: {}",
        error_chain::describe(error.as_ref())
    ));
}
