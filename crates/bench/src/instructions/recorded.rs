//! What was recorded, and how much differs from it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::Context as _;

use crate::figures::{real, whole};

/// Instructions of each path.
pub(super) type Counts = BTreeMap<String, u64>;

/// From how much more on there is a warning.
const DEARER: f64 = 1.2;

/// A path with what it cost and costs.
#[derive(Debug, PartialEq)]
pub(super) struct Compared {
    /// Which.
    pub(super) path: String,
    recorded: Option<u64>,
    now: u64,
}

impl Compared {
    fn ratio(&self) -> Option<f64> {
        self.recorded.map(|recorded| real(self.now) / real(recorded))
    }

    /// Whether it costs over a fifth more than recorded.
    pub(super) fn dearer(&self) -> bool {
        self.ratio().is_some_and(|ratio| ratio > DEARER)
    }

    /// A line about it.
    pub(super) fn told(&self, title: &str) -> String {
        let now = whole(real(self.now));
        let mark = if self.dearer() { "  warning" } else { "" };
        match (self.ratio(), self.recorded) {
            (Some(ratio), Some(recorded)) => {
                let (percent, recorded) = ((ratio - 1.0) * 100.0, whole(real(recorded)));
                format!("{now:>12}  recorded {recorded:>12}  {percent:>+6.1} %  {title}{mark}")
            }
            _ => format!("{now:>12}  not recorded                    {title}"),
        }
    }
}

/// Reads what was recorded.
pub(super) fn read(file: &Path) -> anyhow::Result<Counts> {
    let text = fs::read_to_string(file).with_context(|| format!("{} cannot be read", file.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} has another shape", file.display()))
}

/// Records.
pub(super) fn write(file: &Path, counts: &Counts) -> anyhow::Result<()> {
    let mut text = serde_json::to_string_pretty(counts)?;
    text.push('\n');
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(file, text).with_context(|| format!("{} cannot be written", file.display()))
}

/// Puts both side by side.
pub(super) fn compare(recorded: &Counts, now: &Counts) -> Vec<Compared> {
    let one = |(path, now): (&String, &u64)| Compared {
        path: path.clone(),
        recorded: recorded.get(path).copied(),
        now: *now,
    };
    now.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fifth_more_is_warned_of() {
        let of = |counts: [(&str, u64); 3]| counts.map(|(path, count)| (path.to_owned(), count)).into();
        let recorded: Counts = of([("a", 1_000), ("b", 1_000), ("gone", 1)]);
        let compared = compare(&recorded, &of([("a", 1_200), ("b", 1_201), ("new", 5)]));
        assert_eq!(
            compared.iter().map(Compared::dearer).collect::<Vec<_>>(),
            [false, true, false]
        );
        assert_eq!(
            compared[1].told("B"),
            "       1 201  recorded        1 000   +20.1 %  B  warning"
        );
        assert!(compared[2].told("N").contains("not recorded"));
    }

    #[test]
    fn what_is_recorded_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("deep/counts.json");
        let counts: Counts = [("a".to_owned(), 17)].into();
        write(&file, &counts).unwrap();
        assert_eq!(read(&file).unwrap(), counts);
    }
}
