//! What was answered in the tests, written down across their processes, line by line.

use std::{
    collections::BTreeSet,
    fs::{self, OpenOptions},
    io::Write as _,
    os::unix::process::parent_id,
    path::PathBuf,
    sync::{LazyLock, Mutex, PoisonError},
};

/// Notes a line, once for each process.
pub(super) fn note(line: &str) {
    static NOTED: LazyLock<Mutex<BTreeSet<String>>> = LazyLock::new(Mutex::default);
    let mut noted = NOTED.lock().unwrap_or_else(PoisonError::into_inner);
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

/// Everything that the tests of this run have produced, by any of its processes; the list ends with that.
pub fn answered() -> BTreeSet<String> {
    let text = fs::read_to_string(file()).unwrap_or_default();
    drop(fs::remove_file(file()));
    clear_away();
    text.lines().map(str::to_owned).collect()
}

/// Beside the tests' binaries. Cargo starts them all, so its process stands for the run: runs beside or before this one have lists
/// of their own. Where numbers of processes come again, as in containers, the moment at which it began tells it from others.
fn file() -> PathBuf {
    let cargo = parent_id().to_string();
    let began = began(&cargo).expect("the process that started this one runs");
    folder().join(format!("{PREFIX}{cargo}-{began}"))
}

const PREFIX: &str = "answered-by-";

fn folder() -> PathBuf {
    let program = std::env::current_exe().expect("a test knows its binary");
    program.parent().expect("it lies in a folder").to_owned()
}

/// When a process began, in ticks since the machine did: the 22nd field of its `stat` (proc(5)), of which the second, a name in
/// parentheses, may have spaces. Nothing where there is no such process.
fn began(process: &str) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_whitespace().nth(19).map(str::to_owned)
}

/// Removes the lists of runs that have ended without being judged: those of single suites.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_known_by_the_number_of_its_process_and_its_beginning() {
        let own = std::process::id().to_string();
        let ticks: u64 = began(&own).unwrap().parse().unwrap();
        let parents: u64 = began(&parent_id().to_string()).unwrap().parse().unwrap();
        assert!(parents <= ticks, "{parents} {ticks}");
        assert_eq!(began("0"), None);
    }
}
