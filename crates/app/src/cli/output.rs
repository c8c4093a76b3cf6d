//! What a command prints: its result on stdout, what went wrong on stderr.

use std::{
    fmt::Display,
    io::{self, Write as _},
};

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
    note(format_args!("seller-api: {}", explained(error)));
}

/// An error with its causes, but for those that the text before them tells already.
fn explained(error: &anyhow::Error) -> String {
    error
        .chain()
        .map(ToString::to_string)
        .fold(String::new(), |told, cause| {
            if told.contains(&cause) {
                told
            } else if told.is_empty() {
                cause
            } else {
                format!("{told}: {cause}")
            }
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_told_once() {
        let error = anyhow::anyhow!("refused")
            .context("cannot connect: refused")
            .context("cannot look");
        assert_eq!(explained(&error), "cannot look: cannot connect: refused");
    }
}
