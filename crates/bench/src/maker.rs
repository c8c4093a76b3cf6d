//! Making subjects that are all measured in the same way.

use std::time::Duration;

use crate::load::Load;
use crate::measure::{Subject, Work};
use crate::options::StandOptions;
use crate::pgbench::Script;
use crate::requests::{Calls, Requests};
use crate::server::Server;

/// For how long a load runs before it is measured.
const WARM_UP: Duration = Duration::from_millis(500);

/// Makes subjects of one bench.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Maker<'o> {
    /// How each is measured.
    pub(crate) options: &'o StandOptions,
}

impl Maker<'_> {
    /// A script of pgbench's.
    pub(crate) fn pgbench<'a>(self, key: &'static str, title: &str, script: Script) -> Subject<'a> {
        let duration = Duration::from_secs(self.options.seconds);
        Subject {
            key,
            title: title.to_owned(),
            work: Work::Pgbench(script, self.options.concurrency.into(), duration),
            looked_at: None,
        }
    }

    /// Requests of the public listener that are all answered 200.
    pub(crate) fn http<'a>(
        self,
        key: &'static str,
        title: &str,
        server: &'a Server,
        requests: Requests,
    ) -> Subject<'a> {
        self.calls(key, title, server, &Calls::public(requests, 200))
    }

    /// Calls of a server.
    pub(crate) fn calls<'a>(
        self,
        key: &'static str,
        title: &str,
        server: &'a Server,
        calls: &Calls,
    ) -> Subject<'a> {
        let load = Load {
            server: server.address(calls.listener),
            connections: self.options.concurrency.into(),
            requests: calls.requests.clone(),
            expected: calls.expected,
            warm_up: WARM_UP,
            measured: Duration::from_secs(self.options.seconds),
        };
        Subject {
            key,
            title: title.to_owned(),
            work: Work::Http(server, load),
            looked_at: None,
        }
    }
}
