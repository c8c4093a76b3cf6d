//! Asking before something that cannot be taken back.

use std::{
    fmt::Display,
    io::{self, IsTerminal as _, Write as _},
};

use anyhow::{Context as _, bail};

use super::super::exit::Stopped;

/// Whether to ask.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(super) struct Confirmation {
    /// Do it without asking; needed where there is no terminal to ask on
    #[arg(long)]
    yes: bool,
}

impl Confirmation {
    /// Goes on only when it was said that it is meant.
    pub(super) fn ask(self, what: impl Display) -> anyhow::Result<()> {
        if self.yes {
            return Ok(());
        }
        let (input, mut output) = (io::stdin(), io::stderr());
        if !input.is_terminal() || !output.is_terminal() {
            let why = format!(
                "{what}: that cannot be taken back, so say --yes where there is no terminal to ask on"
            );
            return Err(Stopped::Usage(why).into());
        }
        write!(output, "{what}: that cannot be taken back. Go on? [y/N] ").context("cannot ask")?;
        let mut answer = String::new();
        input.read_line(&mut answer).context("cannot read the answer")?;
        if !is_yes(&answer) {
            bail!("nothing was changed");
        }
        Ok(())
    }
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_yes_is_yes() {
        assert!(["y\n", "Yes\n", " YES "].into_iter().all(is_yes));
        assert!(!["", "\n", "n\n", "yo\n", "yes please\n"].into_iter().any(is_yes));
    }
}
