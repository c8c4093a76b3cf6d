//! What a command prints: its result on stdout, what went wrong on stderr.

use std::{
    fmt::Display,
    io::{self, Write as _},
};

use crate::causes;

/// Prints a line, or several, on stdout.
pub(crate) fn print(text: impl Display) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()
}

/// Says on stderr how a long command is coming along. That nobody reads it is no reason to fail.
pub(crate) fn note(text: impl Display) {
    drop(writeln!(io::stderr(), "{text}"));
}

/// Says on stderr why a command failed, with the causes.
pub(crate) fn complain(error: &anyhow::Error) {
    note(format_args!("seller-api: {}", causes::told(error.as_ref())));
}
