//! What was answered in the tests, written down across their processes: one line for each operation, status and code.

use std::{
    collections::BTreeSet,
    fs::{self, OpenOptions},
    io::Write as _,
    path::PathBuf,
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

/// Everything that tests have produced since this was asked last, by any of their processes; the list begins anew.
pub fn answered() -> BTreeSet<String> {
    let text = fs::read_to_string(file()).unwrap_or_default();
    drop(fs::remove_file(file()));
    text.lines().map(str::to_owned).collect()
}

/// Beside the folder of the tests' binaries.
fn file() -> PathBuf {
    let program = std::env::current_exe().expect("a test knows its binary");
    let folder = program.parent().expect("it lies in a folder");
    folder.join("answered.txt")
}
