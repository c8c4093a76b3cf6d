//! Records the lines that the tests of a run fulfil, in one file for all of the run's processes.

use std::collections::BTreeSet;
use std::fs;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::process::parent_id;
use std::path::PathBuf;
use std::sync::{LazyLock, Mutex};

use crate::serving::lock;

/// Records a line, once per process.
pub(super) fn note(line: &str) {
    static NOTED: LazyLock<Mutex<BTreeSet<String>>> = LazyLock::new(Mutex::default);
    let mut noted = lock(&NOTED);
    if noted.insert(line.to_owned()) {
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(file())
            .expect("the list can be written");
        file.write_all(format!("{line}\n").as_bytes())
            .expect("the list can be written");
    }
}

/// All lines that the processes of this run have recorded. Deletes the file.
pub fn answered() -> BTreeSet<String> {
    let text = fs::read_to_string(file()).unwrap_or_default();
    drop(fs::remove_file(file()));
    clear_away();
    text.lines().map(str::to_owned).collect()
}

/// A file beside the test binaries. Cargo starts all of them, so its process id identifies the run: other
/// runs have other files. Process ids repeat, as in containers, so the name also has the time at which cargo
/// started.
fn file() -> PathBuf {
    let cargo = parent_id().to_string();
    let began = began(&cargo).expect("the process that started this one runs");
    folder().join(format!("{PREFIX}{cargo}-{began}"))
}

const PREFIX: &str = "answered-by-";

fn folder() -> PathBuf {
    let program = std::env::current_exe().expect("a test knows its binary");
    program.parent().expect("it is in a folder").to_owned()
}

/// When a process started, in ticks since boot: field 22 of its `stat` (proc(5)). Field 2, a name in
/// parentheses, may contain spaces. `None` if there is no such process.
fn began(process: &str) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_whitespace().nth(19).map(str::to_owned)
}

/// Removes the files of finished runs that were not read: those of single suites.
fn clear_away() {
    let files = fs::read_dir(folder()).expect("the folder can be read");
    for file in files.filter_map(Result::ok) {
        let name = file.file_name();
        let Some(run) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) else {
            continue;
        };
        let runs = run
            .split_once('-')
            .is_some_and(|(process, at)| began(process).as_deref() == Some(at));
        if !runs {
            drop(fs::remove_file(file.path()));
        }
    }
}
