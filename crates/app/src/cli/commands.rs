//! `seller-api commands`: the help of every command on one page.

use std::process::ExitCode;

use super::{exit, output};

/// Print the help of all commands
///
/// What `--help` says of every command, as Markdown. Needs no configuration.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct Args {}

const EXAMPLES: &str = "\
Examples:
  seller-api commands | less";

/// How wide the page's lines are, whatever terminal it is made on.
const WIDTH: usize = 100;

const HEAD: &str = "\
<!-- Made of the program's own definition: `seller-api commands > docs/operations/CLI.md`. -->
# Commands

Every command with what its `--help` says. Results go to stdout, everything else to stderr.
";

impl Args {
    #[expect(clippy::unused_self, reason = "every command has the same shape")]
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        output::print(markdown().trim_end())?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The page.
fn markdown() -> String {
    let mut definition = super::definition().term_width(WIDTH);
    definition.build();
    let codes = exit::Exit::ALL.map(|exit| format!("| {} | {} |\n", exit.code(), exit.meaning()));
    let codes = codes.concat();
    let mut page = format!(
        "{HEAD}\n## Exit codes\n\n| code | meaning |\n|---|---|\n{codes}\n\
         Codes of 128 and more mean that a signal ended the command, such as 130 for Ctrl-C.\n"
    );
    walk(&mut definition, "seller-api", &mut page);
    page
}

fn walk(command: &mut clap::Command, path: &str, page: &mut String) {
    let help = command.render_long_help().to_string();
    let help: Vec<_> = help.trim_end().lines().map(str::trim_end).collect();
    page.extend(["\n## `", path, "`\n\n```text\n", &help.join("\n"), "\n```\n"]);
    for inner in command
        .get_subcommands_mut()
        .filter(|inner| inner.get_name() != "help")
    {
        let path = format!("{path} {}", inner.get_name());
        walk(inner, &path, page);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_current() {
        let page = include_str!("../../../../docs/operations/CLI.md");
        assert!(
            page.trim_end() == markdown().trim_end(),
            "run `seller-api commands > docs/operations/CLI.md`"
        );
    }
}
