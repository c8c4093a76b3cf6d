//! Plots of what was found, as SVG: a few shapes, written by hand, so that the same figures always give the same bytes.
//!
//! The colours are of a middle lightness and the ground is transparent: one file is readable on light and on dark pages.

mod bars;
mod canvas;
mod field;
mod lines;

use std::fs;
use std::path::Path;

use anyhow::Context as _;

pub(crate) use bars::{Bar, Part, bars};
pub(crate) use lines::{Axis, Line, Panel, lines, panels};

/// The folder beside the document that plots lie in.
const FOLDER: &str = "performance";

/// A plot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plot {
    /// The file's name, without its ending.
    pub(crate) name: &'static str,
    /// What it shows, for those who cannot see it.
    pub(crate) says: String,
    /// The picture.
    pub(crate) svg: String,
}

impl Plot {
    /// How a text of the document shows it.
    fn markdown(&self) -> String {
        format!("![{}]({FOLDER}/{}.svg)", self.says, self.name)
    }
}

/// Shows plots at a report's end.
pub(crate) fn append(plots: &[Plot], report: &mut String) {
    for plot in plots {
        report.push('\n');
        report.push_str(&plot.markdown());
        report.push('\n');
    }
}

/// Writes the pictures beside the document.
pub(crate) fn write(plots: &[Plot], document: &Path) -> anyhow::Result<()> {
    let folder = document.parent().unwrap_or(Path::new("")).join(FOLDER);
    for plot in plots {
        let file = folder.join(format!("{}.svg", plot.name));
        fs::create_dir_all(&folder)
            .and_then(|()| fs::write(&file, &plot.svg))
            .with_context(|| format!("{} cannot be written", file.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plots_lie_beside_the_document_and_are_shown_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let plots = [Plot {
            name: "x",
            says: "X by y".to_owned(),
            svg: "<svg/>".to_owned(),
        }];
        write(&plots, &folder.path().join("REPORT.md")).unwrap();
        let mut report = "text\n".to_owned();
        append(&plots, &mut report);
        assert_eq!(report, "text\n\n![X by y](performance/x.svg)\n");
        let written = fs::read_to_string(folder.path().join("performance/x.svg")).unwrap();
        assert_eq!(written, "<svg/>");
    }
}
