//! CPU time that processes have used, read from `/proc` (Linux, proc(5)), at the kernel's resolution of usually 10 ms.

use std::fs;
use std::time::Duration;

use anyhow::Context as _;

/// What one process has used.
pub(crate) fn process(pid: u32) -> anyhow::Result<Duration> {
    Ok(Stat::read(pid)?.own)
}

/// What a process, its children and the children it has seen end have used: a PostgreSQL server with its backends.
pub(crate) fn family(pid: u32) -> anyhow::Result<Duration> {
    loop {
        let parent = Stat::read(pid)?;
        let children = children(pid)?
            .into_iter()
            .fold(Duration::ZERO, Duration::saturating_add);
        // A child that ended in between is in neither sum, or in both.
        if Stat::read(pid)?.ended_children == parent.ended_children {
            return Ok(parent.own + parent.ended_children + children);
        }
    }
}

/// Waits, at most a second, until a process has no more than `count` children: backends end a moment after their clients.
pub(crate) async fn few_children(pid: u32, count: usize) -> anyhow::Result<()> {
    for _ in 0..100 {
        if children(pid)?.len() <= count {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

/// What each living child of a process has used.
pub(crate) fn children(pid: u32) -> anyhow::Result<Vec<Duration>> {
    let mut used = Vec::new();
    for entry in fs::read_dir("/proc").context("/proc cannot be read")? {
        let name = entry.context("/proc cannot be read")?.file_name();
        let other = name.to_str().and_then(|name| name.parse().ok());
        // A process that has ended meanwhile is its parent's to count.
        if let Some(stat) = other.and_then(|other| Stat::read(other).ok())
            && stat.parent == pid
        {
            used.push(stat.own);
        }
    }
    Ok(used)
}

/// What the children of this process that have ended and been waited for have used.
pub(crate) fn ended_children() -> anyhow::Result<Duration> {
    Ok(Stat::read(std::process::id())?.ended_children)
}

#[derive(Debug, PartialEq, Eq)]
struct Stat {
    parent: u32,
    own: Duration,
    ended_children: Duration,
}

impl Stat {
    fn read(pid: u32) -> anyhow::Result<Self> {
        let path = format!("/proc/{pid}/stat");
        let text = fs::read_to_string(&path).with_context(|| format!("{path} cannot be read"))?;
        Self::parse(&text, rustix::param::clock_ticks_per_second())
            .with_context(|| format!("{path} is not as proc(5) says"))
    }

    fn parse(text: &str, ticks_per_second: u64) -> Option<Self> {
        // The second field, the program's name in brackets, may hold anything; the third comes after the last bracket.
        let (_, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let ticks = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        let time = |user: usize, system: usize| {
            let ticks = ticks(user)? + ticks(system)?;
            Some(Duration::from_micros(ticks * 1_000_000 / ticks_per_second))
        };
        Some(Self {
            parent: fields.get(1)?.parse().ok()?,
            own: time(14, 15)?,
            ended_children: time(16, 17)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_fields_behind_any_name() {
        let text = "7 (a) b (c) S 5 1 1 0 -1 4194560 1 2 3 4 100 50 30 20 20 0 1 0 5";
        let stat = Stat::parse(text, 100).unwrap();
        assert_eq!(stat.parent, 5);
        assert_eq!(stat.own, Duration::from_millis(1_500));
        assert_eq!(stat.ended_children, Duration::from_millis(500));
        assert_eq!(Stat::parse("7 (a) S 5", 100), None);
    }

    #[test]
    fn this_process_has_used_something_readable() {
        let own = process(std::process::id()).unwrap();
        assert!(family(std::process::id()).unwrap() >= own / 2);
    }
}
