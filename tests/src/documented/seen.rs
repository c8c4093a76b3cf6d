//! What was answered in the tests, written down across their processes: one line for each operation, status and code.

use std::{
    collections::BTreeSet,
    fs::{self, OpenOptions},
    io::Write as _,
    os::unix::process::parent_id,
    path::{Path, PathBuf},
    sync::{LazyLock, Mutex},
};

use testkit::Answer;

use super::{Operation, codes};

/// Notes an answer of an operation.
pub(super) fn note(operation: &Operation, answer: &Answer) {
    static NOTED: LazyLock<Mutex<BTreeSet<String>>> = LazyLock::new(Mutex::default);
    for code in codes(answer) {
        let line = format!("{} {} {code}", operation.name(), answer.status);
        let mut noted = NOTED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if noted.insert(line.clone()) {
            let mut file = OpenOptions::new()
                .create(true)
                .append(true)
                .open(file())
                .expect("the list can be written");
            file.write_all(format!("{line}\n").as_bytes())
                .expect("the list can be written");
        }
    }
}

/// Everything that the tests of this run have produced, by any of its processes; the list ends with that.
pub fn answered() -> BTreeSet<String> {
    let text = fs::read_to_string(file()).unwrap_or_default();
    drop(fs::remove_file(file()));
    clear_away();
    text.lines().map(str::to_owned).collect()
}

/// Beside the folder of the tests' binaries. Cargo starts them all, so its process stands for the run: runs beside or before this
/// one have lists of their own.
fn file() -> PathBuf {
    folder().join(format!("{PREFIX}{}", parent_id()))
}

const PREFIX: &str = "answered-by-";

fn folder() -> PathBuf {
    let program = std::env::current_exe().expect("a test knows its binary");
    program.parent().expect("it lies in a folder").to_owned()
}

/// Removes the lists of runs that have ended without being judged: those of single suites.
fn clear_away() {
    let files = fs::read_dir(folder()).expect("the folder can be read");
    for file in files.filter_map(Result::ok) {
        let name = file.file_name();
        let run = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        if run.is_some_and(|run| !Path::new("/proc").join(run).exists()) {
            drop(fs::remove_file(file.path()));
        }
    }
}
