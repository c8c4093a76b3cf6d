//! The limit of open files: each connection is one.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Files beside the connections of the public listener and to receivers: the database's, the back office's, the runtimes' own.
const OTHERS: u64 = 2_048;

/// Raises the soft limit to the hard one, and says so where that is too low for `connections`. Many systems set the soft
/// limit to 1024 for the sake of old programs.
pub(crate) fn allow(connections: u32) {
    let limit = getrlimit(Resource::Nofile);
    let raised = rustix::process::Rlimit {
        current: limit.maximum,
        ..limit
    };
    let allowed = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    };
    let needed = u64::from(connections) + OTHERS;
    if let Some(allowed) = allowed.filter(|allowed| *allowed < needed) {
        tracing::warn!(
            allowed,
            needed,
            "too few open files are allowed for `server.max_connections` and `webhooks.concurrency`"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_rises_to_the_hard_one() {
        let hard = getrlimit(Resource::Nofile).maximum;
        allow(1);
        let now = getrlimit(Resource::Nofile);
        assert_eq!((now.current, now.maximum), (hard, hard));
    }
}
