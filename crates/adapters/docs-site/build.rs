//! Finds the guides, the examples and the released documents, so that each is on the site because it is in its folder.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// The repository, from this package.
const ROOT: &str = "../../..";
/// What the guides are listed in; the navigation has them in its order.
const LIST: &str = "docs/guide/README.md";
const EXAMPLES: &str = "docs/examples";
/// What is made below the examples when they are installed, built or run.
const MADE: [&str; 3] = ["node_modules", "dist", "__pycache__"];
const RELEASED: &str = "docs/released";
/// The pictures of pages.
const PICTURES: &str = "docs/performance";

fn main() -> io::Result<()> {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?).join(ROOT);
    for folder in ["docs/guide", EXAMPLES, RELEASED, PICTURES] {
        println!("cargo::rerun-if-changed={ROOT}/{folder}");
    }
    let list = fs::read_to_string(root.join(LIST))?;
    let mut examples = Vec::new();
    find_examples(&root, EXAMPLES, &mut examples)?;
    examples.sort();
    let (mut files, sources): (Vec<_>, Vec<_>) = examples.into_iter().partition(|file| is_page(file));
    embed(&root, "examples.rs", &sources)?;
    for entry in fs::read_dir(root.join("docs/guide"))? {
        files.push(format!("docs/guide/{}", entry?.file_name().to_string_lossy()));
    }
    files.retain(|file| is_page(file) && root.join(file).is_file());
    files.sort_by_key(|file| (place(&list, file), file.clone()));
    embed(&root, "guides.rs", &files)?;
    let mut released = Vec::new();
    for entry in fs::read_dir(root.join(RELEASED))? {
        released.push(format!("{RELEASED}/{}", entry?.file_name().to_string_lossy()));
    }
    released.retain(|file| Path::new(file).extension().is_some_and(|kind| kind == "json"));
    released.sort();
    embed(&root, "released.rs", &released)?;
    let mut pictures = Vec::new();
    for entry in fs::read_dir(root.join(PICTURES))? {
        pictures.push(format!("{PICTURES}/{}", entry?.file_name().to_string_lossy()));
    }
    pictures.retain(|file| Path::new(file).extension().is_some_and(|kind| kind == "svg"));
    pictures.sort();
    embed(&root, "pictures.rs", &pictures)
}

/// Whether a file is shown as a page.
fn is_page(file: &str) -> bool {
    Path::new(file).extension().is_some_and(|kind| kind == "md")
}

/// Finds what belongs to the examples: what people wrote, and nothing that a run left behind, which may hold secrets.
fn find_examples(root: &Path, folder: &str, files: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(folder))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{folder}/{name}");
        let kind = Path::new(&name).extension().and_then(OsStr::to_str);
        if entry.file_type()?.is_dir() {
            if !MADE.contains(&name.as_str()) {
                find_examples(root, &path, files)?;
            }
        } else if matches!(kind, Some("md" | "py" | "ts"))
            || ["package.json", "tsconfig.json"].contains(&&*name)
        {
            files.push(path);
        }
    }
    Ok(())
}

/// Writes the code of a list of files, each with its text.
fn embed(root: &Path, name: &str, files: &[String]) -> io::Result<()> {
    let mut code = "&[\n".to_owned();
    for file in files {
        let path = root.join(file).display().to_string();
        writeln!(code, "    ({file:?}, include_str!({path:?})),").map_err(io::Error::other)?;
    }
    code.push_str("]\n");
    let out = PathBuf::from(env::var("OUT_DIR").map_err(io::Error::other)?);
    fs::write(out.join(name), code)
}

/// Where the list names a file for the first time; the list itself comes first.
fn place(list: &str, file: &str) -> usize {
    if file == LIST {
        return 0;
    }
    let name = if file.starts_with(EXAMPLES) {
        // Each example stands below the page about all.
        "../examples/README.md"
    } else {
        file.trim_start_matches("docs/guide/")
    };
    list.find(&format!("({name})")).unwrap_or(usize::MAX)
}
