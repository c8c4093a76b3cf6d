//! Making subjects that are all measured in the same way.

use std::time::Duration;

use crate::load::Load;
use crate::measure::{Subject, Work};
use crate::options::StandOptions;
use crate::pgbench::Script;
use crate::requests::Requests;
use crate::stand::Stand;

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
        }
    }

    /// Requests that are all answered 200.
    pub(crate) fn http<'a>(
        self,
        key: &'static str,
        title: &str,
        stand: &'a Stand,
        requests: Requests,
    ) -> Subject<'a> {
        self.answered(200, key, title, stand, requests)
    }

    /// Requests that are all answered by another status.
    pub(crate) fn answered<'a>(
        self,
        expected: u16,
        key: &'static str,
        title: &str,
        stand: &'a Stand,
        requests: Requests,
    ) -> Subject<'a> {
        let load = Load {
            server: stand.server.public,
            connections: self.options.concurrency.into(),
            requests,
            expected,
            warm_up: WARM_UP,
            measured: Duration::from_secs(self.options.seconds),
        };
        Subject {
            key,
            title: title.to_owned(),
            work: Work::Http(&stand.server, load),
        }
    }
}
