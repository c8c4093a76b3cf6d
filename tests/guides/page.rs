//! Parses the commands of a Markdown page and their expected output.

use std::path::{Path, PathBuf};
use std::{fs, io};

use blackbox::fences;

/// What fails beside Linux and bash: GNU's `date`, zsh's `path`, which is its `PATH`, and Linux's files.
const NOT_PORTABLE: [&str; 4] = ["date -d", "date -u -d", " path=", "$(cat /proc/"];

/// A block of commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    /// Its line in the page, from 1.
    pub line: usize,
    pub commands: String,
    pub shown: Option<Shown>,
}

/// The expected output of commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shown {
    Json(String),
    Text(String),
}

/// A page and its commands in order.
#[derive(Debug)]
pub(crate) struct Page {
    /// Relative to the top of the repository.
    pub name: String,
    pub blocks: Vec<Block>,
    /// Breaches of the convention.
    pub faults: Vec<String>,
}

impl Page {
    pub(crate) fn read(name: &str, markdown: &str) -> Self {
        let mut page = Self {
            name: name.to_owned(),
            blocks: Vec::new(),
            faults: Vec::new(),
        };
        let mut is_after_commands = false;
        for fence in fences(markdown) {
            let was_after_commands = std::mem::take(&mut is_after_commands);
            let (language, mark) = fence.info.split_once(' ').unwrap_or((&fence.info, ""));
            match (language, mark) {
                ("sh", "") => {
                    if let Some(found) = NOT_PORTABLE.iter().find(|words| fence.text.contains(**words)) {
                        page.blame(fence.line, &format!("`{found}` does not work everywhere"));
                    }
                    page.blocks.push(Block {
                        line: fence.line,
                        commands: fence.text,
                        shown: None,
                    });
                    is_after_commands = true;
                }
                ("sh", mark) => {
                    let reason = mark.strip_prefix("no-run:").map(str::trim);
                    if reason.is_none_or(str::is_empty) {
                        page.blame(fence.line, "`sh` is followed by `no-run: <why>` or by nothing");
                    }
                }
                ("json", _) if was_after_commands && fence.follows => page.shows(Shown::Json(fence.text)),
                ("text", _) if was_after_commands && fence.follows => page.shows(Shown::Text(fence.text)),
                _ if calls_curl(&fence.text) => {
                    page.blame(
                        fence.line,
                        "a block with `curl` is marked `sh`, so that it is run",
                    );
                }
                _ => {}
            }
        }
        page
    }

    /// Whether the page has API requests. Commands of other pages are for the readers' machines.
    pub(crate) fn has_calls(&self) -> bool {
        self.blocks.iter().any(|block| calls_curl(&block.commands))
    }

    fn shows(&mut self, shown: Shown) {
        if let Some(block) = self.blocks.last_mut() {
            block.shown = Some(shown);
        }
    }

    fn blame(&mut self, line: usize, fault: &str) {
        self.faults.push(format!("{}:{line}: {fault}", self.name));
    }
}

fn calls_curl(text: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric() && !"-_./:".contains(c))
        .any(|word| word == "curl")
}

/// The README and all pages of `docs`, sorted by name.
pub(crate) fn all_pages(root: &Path) -> io::Result<Vec<Page>> {
    let (mut files, mut folders) = (vec![root.join("README.md")], vec![root.join("docs")]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            // The examples' installed dependencies.
            if path.is_dir() && !path.ends_with("node_modules") {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                files.push(path);
            }
        }
    }
    files.sort();
    files.iter().map(|path| read(root, path)).collect()
}

fn read(root: &Path, path: &PathBuf) -> io::Result<Page> {
    let name = path.strip_prefix(root).unwrap_or(path).to_string_lossy();
    Ok(Page::read(&name, &fs::read_to_string(path)?))
}
