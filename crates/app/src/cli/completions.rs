//! `seller-api completions`.

use std::process::ExitCode;

use anyhow::Context as _;
use clap::ValueEnum;

use super::output;

/// Print what completes commands and flags in a shell
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Shell {
    Bash,
    Fish,
    Zsh,
}

const EXAMPLES: &str = "\
Examples:
  source <(seller-api completions bash)
  seller-api completions bash > /etc/bash_completion.d/seller-api
  seller-api completions zsh > /usr/local/share/zsh/site-functions/_seller-api
  seller-api completions fish > ~/.config/fish/completions/seller-api.fish";

impl Args {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let shell = match self.shell {
            Shell::Bash => clap_complete::Shell::Bash,
            Shell::Fish => clap_complete::Shell::Fish,
            Shell::Zsh => clap_complete::Shell::Zsh,
        };
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut super::definition(), "seller-api", &mut script);
        let script = String::from_utf8(script).context("the script is no text")?;
        // The generator for bash takes a hyphen in a name for the end of a command in one half of its script and not in the
        // other: of one spelling, they find each other.
        output::print(script.replace("__subcmd__", "__").trim_end())?;
        Ok(ExitCode::SUCCESS)
    }
}
