//! Watches the migrations, which are embedded, and names their content.

use std::hash::{DefaultHasher, Hasher as _};
use std::path::Path;
use std::{fs, io};

fn main() -> io::Result<()> {
    let migrations = Path::new("../../../migrations");
    println!("cargo::rerun-if-changed={}", migrations.display());
    let mut hasher = DefaultHasher::new();
    add(migrations, &mut hasher)?;
    println!("cargo::rustc-env=MIGRATIONS_FINGERPRINT={:016x}", hasher.finish());
    Ok(())
}

/// Adds the names and contents of all SQL below a folder, in the order of their names.
fn add(folder: &Path, hasher: &mut DefaultHasher) -> io::Result<()> {
    let entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    let mut paths = entries.into_iter().map(|entry| entry.path()).collect::<Vec<_>>();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            add(&path, hasher)?;
        } else if path.extension().is_some_and(|extension| extension == "sql") {
            hasher.write(path.to_string_lossy().as_bytes());
            hasher.write(&fs::read(&path)?);
        }
    }
    Ok(())
}
