//! A runbook: a page whose command blocks are executed in order.

use std::{cell::Cell, path::PathBuf, process::Command};

use blackbox::fences;

use crate::text;

/// The `sh` blocks of a page.
pub(crate) struct Runbook {
    commands: Vec<String>,
    next: Cell<usize>,
    /// The account that runs the commands.
    account: (u32, u32),
    environment: Vec<(String, String)>,
}

impl Runbook {
    /// Reads a page. The account runs its commands with this environment.
    pub(crate) fn read(page: &str, account: (u32, u32), environment: Vec<(String, String)>) -> Self {
        Self {
            commands: blocks(page, "sh"),
            next: Cell::new(0),
            account,
            environment,
        }
    }

    /// Sets a variable for the following blocks.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.environment.push((name.to_owned(), value.to_owned()));
    }

    /// The settings in the page's only `ini` block, with the backup folder `named` replaced by `folder`.
    pub(crate) fn settings(page: &str, named: &str, folder: &str) -> Vec<(String, String)> {
        let block = blocks(page, "ini").concat().replace(named, folder);
        let setting = |line: &str| {
            let (name, value) = line.split_once(" = ").expect("name = value");
            (name.to_owned(), value.trim_matches('\'').to_owned())
        };
        block.lines().map(setting).collect()
    }

    /// Runs the next block and returns its output. The block must contain `word`, so that page and test stay
    /// in step.
    #[track_caller]
    pub(crate) fn step(&self, word: &str) -> String {
        let number = self.next.replace(self.next.get() + 1);
        let block = self
            .commands
            .get(number)
            .unwrap_or_else(|| panic!("no block is left for {word}"));
        assert!(block.contains(word), "{word} is not what comes next:\n{block}");
        let (uid, gid) = self.account;
        let mut bash = Command::new("bash");
        bash.args(["-eu", "-c", block])
            .current_dir("/")
            .envs(self.environment.iter().cloned());
        if rustix::process::geteuid().is_root() {
            use std::os::unix::process::CommandExt as _;
            bash.uid(uid).gid(gid);
        }
        let ended = bash.output().expect("bash starts");
        let said = String::from_utf8_lossy(&ended.stdout);
        let complained = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{block}\n{said}{complained}");
        said.trim().to_owned()
    }

    /// Asserts that every block of the page was run.
    #[track_caller]
    pub(crate) fn is_done(&self) {
        assert_eq!(self.next.get(), self.commands.len(), "blocks are left");
    }
}

/// `PATH` with this folder in front.
pub(crate) fn path_with(folder: PathBuf) -> String {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::iter::once(folder).chain(std::env::split_paths(&path));
    std::env::join_paths(path).unwrap().into_string().unwrap()
}

/// The blocks with exactly this info string.
fn blocks(page: &str, info: &str) -> Vec<String> {
    let mut fences = fences(&text(page));
    fences.retain(|fence| fence.info == info);
    fences.into_iter().map(|fence| fence.text).collect()
}
