//! What the figures were measured on.

use std::fs;
use std::process::Stdio;

use tokio::process::Command;

use crate::cluster::Cluster;
use crate::program::Program;

/// The machine and the versions of what ran on it, as the report's table shows them.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    /// Name and value of each fact.
    pub(crate) facts: Vec<(&'static str, String)>,
}

impl Machine {
    /// Looks at the machine, the cluster and the program.
    pub(crate) async fn describe(cluster: &Cluster, program: &Program) -> anyhow::Result<Self> {
        let cores = std::thread::available_parallelism()?.get();
        let buffers = cluster.sql("postgres", "show shared_buffers").await?.concat();
        let version = cluster.sql("postgres", "show server_version").await?.concat();
        let mut facts = vec![
            ("Processor", format!("{cores} × {}", processor())),
            ("Memory", memory()),
            ("Kernel", first_line("/proc/sys/kernel/osrelease")),
            (
                "PostgreSQL",
                format!("{version}, shared_buffers {buffers}, durable (fsync on, synchronous_commit on)"),
            ),
            ("Program", program.version().await?),
        ];
        facts.extend(commit().await.map(|commit| ("Commit", commit)));
        Ok(Self { facts })
    }
}

/// The commit that is checked out here, with a mark where files differ from it; nothing where git does not know.
async fn commit() -> Option<String> {
    let mut git = Command::new("git");
    git.args([
        "describe",
        "--always",
        "--exclude=*",
        "--dirty=, changed",
        "--abbrev=12",
    ]);
    let output = git.stdin(Stdio::null()).kill_on_drop(true).output().await.ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}

fn processor() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name"));
    model.map_or_else(
        || "unknown".to_owned(),
        |model| model.trim_matches([' ', '\t', ':']).to_owned(),
    )
}

/// A quarter of the machine's memory, as `docs/OPERATIONS.md` advises (in whole GB); 2 GB where it is not known.
pub(crate) fn shared_buffers() -> String {
    let quarter = gibibytes().map_or(2, |gibibytes| (gibibytes / 4).max(1));
    format!("{quarter}GB")
}

fn memory() -> String {
    gibibytes().map_or_else(|| "unknown".to_owned(), |gibibytes| format!("{gibibytes} GiB"))
}

fn gibibytes() -> Option<u64> {
    let info = fs::read_to_string("/proc/meminfo").ok()?;
    let total = info.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = total.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes.div_ceil(1024 * 1024))
}

fn first_line(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}
