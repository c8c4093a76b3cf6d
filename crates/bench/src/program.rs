//! The program under test: finding it, and running its short commands.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, ensure};
use tokio::process::Command;

const NAME: &str = "seller-api";

/// The real binary.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    path: PathBuf,
}

impl Program {
    /// The binary at `given`, else the one beside this executable, which cargo builds anew if it started us.
    pub(crate) async fn locate(given: Option<&Path>) -> anyhow::Result<Self> {
        if let Some(path) = given {
            return Self::at(path.to_owned());
        }
        let own = std::env::current_exe().context("this executable's place is unknown")?;
        let folder = own.parent().context("this executable lies nowhere")?;
        if let Some(cargo) = std::env::var_os("CARGO") {
            let mut build = Command::new(cargo);
            build.args(["build", "--package", NAME, "--quiet"]);
            if folder.ends_with("release") {
                build.arg("--release");
            }
            let status = build
                .kill_on_drop(true)
                .status()
                .await
                .context("cargo does not start")?;
            ensure!(status.success(), "{NAME} does not build");
        }
        Self::at(folder.join(NAME))
    }

    fn at(path: PathBuf) -> anyhow::Result<Self> {
        ensure!(
            path.is_file(),
            "{} is not there: build it by `cargo build --release -p {NAME}`, or name it with --server",
            path.display()
        );
        Ok(Self { path })
    }

    /// A command of the program over a database.
    pub(crate) fn command(&self, database_url: &str) -> Command {
        let mut command = Command::new(&self.path);
        command
            .env("DATABASE_URL", database_url)
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }

    /// Runs a short command to its end and gives what it printed.
    pub(crate) async fn output(&self, database_url: &str, arguments: &[&str]) -> anyhow::Result<String> {
        let output = self.command(database_url).args(arguments).output().await?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success(),
            "{NAME} {} failed: {errors}",
            arguments.join(" ")
        );
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// The program's version as it prints it.
    pub(crate) async fn version(&self) -> anyhow::Result<String> {
        Ok(self.output("", &["--version"]).await?.trim().to_owned())
    }
}
