//! A shell that runs the commands of one page against a separate sandbox.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use blackbox::{Sandbox, free_port, on_path};
use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;
use tokio::process::Command;

use crate::{PROGRAM, page::Page};

const PATIENCE: Duration = Duration::from_mins(3);
/// The port of the reader's own receiver on the pages.
const OWN_RECEIVER: &str = "9000";

/// The results of one block's commands.
#[derive(Debug)]
pub(crate) struct Ran {
    pub printed: String,
    pub complaints: String,
    /// The status of the last answer to each `curl`, in no particular order; `None` if there was no answer.
    pub statuses: Vec<Option<u16>>,
}

/// Runs all blocks of a page in one shell, up to the first command that fails. Returns the results of the
/// blocks that were started, and whether the last command succeeded.
pub(crate) async fn run(root: &Path, page: &Page) -> (Vec<Ran>, bool) {
    let folder = tempfile::tempdir().unwrap();
    let sandbox = Sandbox::open(PROGRAM, folder.path()).await;
    for name in ["README.md", "docs"] {
        symlink(root.join(name), folder.path().join(name)).unwrap();
    }
    let notes = tempfile::tempdir().unwrap();
    let script = notes.path().join("page.sh");
    fs::write(&script, script_of(page, &sandbox, notes.path())).unwrap();
    let succeeded = bash(&script, folder.path(), &watched_curl(&notes)).await;
    let ended = sandbox.end(Signal::INT).await;
    assert_eq!(ended, Some(0), "the sandbox of {}", page.name);
    let begun = (0..page.blocks.len()).take_while(|block| notes.path().join(format!("{block}.out")).exists());
    (begun.map(|block| ran(notes.path(), block)).collect(), succeeded)
}

/// The commands with the sandbox's actual ports in place of the default ones.
fn script_of(page: &Page, sandbox: &Sandbox, notes: &Path) -> String {
    let own = free_port();
    let mut script = "set -eu\ntrap 'kill $(jobs -p) 2>/dev/null || :' EXIT\n".to_owned();
    for (number, block) in page.blocks.iter().enumerate() {
        let commands = block
            .commands
            .replace("http://127.0.0.1:8080", &sandbox.text("base_url"))
            .replace("http://127.0.0.1:8081", &sandbox.text("backoffice_url"))
            .replace(OWN_RECEIVER, &own.to_string());
        let note = notes.join(number.to_string());
        let note = note.display();
        writeln!(
            script,
            "export WATCHED='{note}'; exec >'{note}.out' 2>'{note}.err'\n{commands}"
        )
        .unwrap();
    }
    script
}

/// A folder with a `curl` that records its answers in addition to its normal output.
fn watched_curl(notes: &TempDir) -> PathBuf {
    let folder = notes.path().join("bin");
    fs::create_dir(&folder).unwrap();
    let curl = on_path("curl").unwrap();
    let wrapper = format!(
        "#!/bin/sh\nexec '{}' --trace-ascii \"$WATCHED.$$.curl\" \"$@\"\n",
        curl.display()
    );
    let path = folder.join("curl");
    fs::write(&path, wrapper).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

async fn bash(script: &Path, folder: &Path, before: &Path) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::iter::once(before.to_owned()).chain(std::env::split_paths(&path));
    let mut shell = Command::new("bash")
        .arg(script)
        .current_dir(folder)
        .env("PATH", std::env::join_paths(path).unwrap())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .expect("bash starts");
    let group = shell.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    let ended = tokio::time::timeout(PATIENCE, shell.wait()).await;
    if ended.is_err() {
        // Kills the processes that it was waiting for too.
        kill_process_group(group.expect("a process"), Signal::KILL).unwrap();
    }
    ended.is_ok_and(|ended| ended.unwrap().success())
}

fn ran(notes: &Path, block: usize) -> Ran {
    let prefix = format!("{block}.");
    let traces = fs::read_dir(notes).unwrap().map(|entry| entry.unwrap().path());
    let traces = traces.filter(|path| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with(&prefix) && name.ends_with(".curl")
    });
    let text = |name: &str| {
        String::from_utf8_lossy(&fs::read(notes.join(format!("{prefix}{name}"))).unwrap()).into_owned()
    };
    Ran {
        printed: text("out"),
        complaints: text("err"),
        statuses: traces
            .map(|path| status(&String::from_utf8_lossy(&fs::read(path).unwrap())))
            .collect(),
    }
}

/// The last status line.
fn status(trace: &str) -> Option<u16> {
    let lines = trace.lines().rev();
    lines
        .filter_map(|line| line.strip_prefix("0000: HTTP/"))
        .find_map(|line| line.split(' ').nth(1)?.parse().ok())
}
