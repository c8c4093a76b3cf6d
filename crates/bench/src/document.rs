//! Putting a report into a document, between two markers of its own, so that the prose around it stays.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, ensure};

/// Replaces what stands between the markers of `section` in the document.
pub(crate) fn replace(document: &Path, section: &str, report: &str) -> anyhow::Result<()> {
    let text = fs::read_to_string(document).with_context(|| {
        format!(
            "{} cannot be read; run this at the top of the repository",
            document.display()
        )
    })?;
    let text = replaced(&text, section, report).with_context(|| {
        format!(
            "{} lacks the markers of the section {section}",
            document.display()
        )
    })?;
    fs::write(document, text).with_context(|| format!("{} cannot be written", document.display()))
}

/// Fails early where [`replace`] would fail late.
pub(crate) fn check(document: &Path, section: &str) -> anyhow::Result<()> {
    let text = fs::read_to_string(document).with_context(|| {
        format!(
            "{} cannot be read; run this at the top of the repository",
            document.display()
        )
    })?;
    ensure!(
        replaced(&text, section, "").is_some(),
        "{} lacks the markers of the section {section}",
        document.display()
    );
    Ok(())
}

fn replaced(text: &str, section: &str, report: &str) -> Option<String> {
    let begin = format!("<!-- bench {section}: begin -->");
    let end = format!("<!-- bench {section}: end -->");
    let (before, rest) = text.split_once(&begin)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{begin}\n\n{}\n\n{end}{after}", report.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_section_changes() {
        let text = "a\n<!-- bench read: begin -->\nold\n<!-- bench read: end -->\nb\n";
        let new = replaced(text, "read", "new\n").unwrap();
        assert_eq!(
            new,
            "a\n<!-- bench read: begin -->\n\nnew\n\n<!-- bench read: end -->\nb\n"
        );
        assert_eq!(replaced(&new, "read", "new").unwrap(), new);
        assert_eq!(replaced(text, "write", "new"), None);
    }
}
