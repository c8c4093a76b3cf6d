//! The errors with which browsers came back to applications in the tests, by `Location`: each has to be in the document, and what was
//! seen is written down across processes, so that what no test has produced can be told (`tests/unseen`).

use std::{
    collections::BTreeSet,
    fs::{self, OpenOptions},
    io::Write as _,
    os::unix::process::parent_id,
    path::{Path, PathBuf},
};

use crate::Document;

const PREFIX: &str = "returned-by-";

/// The errors that the document names.
pub fn documented_returns() -> BTreeSet<String> {
    let document = Document::current();
    let operation = document
        .operation("GET", "/oauth/authorize")
        .expect("it is there");
    let mut responses = operation.responses(document);
    let redirect = responses.find(|(status, _)| *status == "302");
    let (_, redirect) = redirect.expect("it redirects");
    let errors = document.resolved(&redirect["x-redirect-error"])["enum"].as_array();
    let text = |error: &serde_json::Value| error.as_str().expect("a code").to_owned();
    errors.expect("errors").iter().map(text).collect()
}

/// Notes an error that has come back.
#[track_caller]
pub(crate) fn note(error: &str) {
    assert!(
        documented_returns().contains(error),
        "`{error}` comes back and is not documented"
    );
    let mut list = OpenOptions::new();
    let mut list = list
        .create(true)
        .append(true)
        .open(list_of_this_run())
        .expect("the list can be written");
    list.write_all(format!("{error}\n").as_bytes())
        .expect("the list can be written");
}

/// Every error that has come back in this run, to any of its processes; the list ends with that.
pub fn returned() -> BTreeSet<String> {
    let text = fs::read_to_string(list_of_this_run()).unwrap_or_default();
    drop(fs::remove_file(list_of_this_run()));
    for file in fs::read_dir(folder()).expect("the folder can be read").flatten() {
        let name = file.file_name();
        let run = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        let process = run.and_then(|run| run.split('-').next());
        if process.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
            drop(fs::remove_file(file.path()));
        }
    }
    text.lines().map(str::to_owned).collect()
}

/// Beside the tests' binaries, under the number and the beginning of cargo's process: it stands for the run.
fn list_of_this_run() -> PathBuf {
    let cargo = parent_id();
    let stat = fs::read_to_string(format!("/proc/{cargo}/stat")).expect("what started this process runs");
    // The 22nd field (proc(5)); the second, a name in parentheses, may have spaces.
    let (_, after_name) = stat.rsplit_once(')').expect("a name");
    let began = after_name.split_whitespace().nth(19).expect("a beginning");
    folder().join(format!("{PREFIX}{cargo}-{began}"))
}

fn folder() -> PathBuf {
    let program = std::env::current_exe().expect("a test knows its binary");
    program.parent().expect("it lies in a folder").to_owned()
}
