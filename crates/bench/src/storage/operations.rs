//! What is done: requests of the product's, and pgbench's scripts of the same writes.

use crate::cluster::Cluster;
use crate::measure::{Subject, Work};
use crate::options::StorageOptions;
use crate::pgbench::Script;
use crate::progress::Progress;
use crate::requests::{Calls, Listener, get_any};
use crate::stand::Stand;
use crate::{tokens, write};

/// `GET /v1/me`, behind which is the gate alone.
pub(super) const ME: &str = "me";
/// In the report's order: each request behind the script of its writes.
const WRITES: [&str; 12] = [
    ME,
    write::key::PATCH_ROWS,
    write::key::PATCH,
    write::key::SHIPMENT_ROWS,
    write::key::SHIPMENT,
    write::key::PLACING_ROWS,
    write::key::PLACING,
    tokens::key::TOKEN_ROWS,
    tokens::key::TOKEN_STATEMENT,
    tokens::key::TOKEN,
    tokens::key::REFRESH_ROWS,
    tokens::key::REFRESH,
];

/// Something that is done again and again.
#[derive(Clone, Debug)]
pub(super) struct Operation {
    /// By what it is found.
    pub(super) key: &'static str,
    /// What the report calls it.
    pub(super) title: String,
    /// What it is.
    pub(super) kind: Kind,
}

/// What is done.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// A script, by so many clients.
    Script(Script, usize),
    /// Requests, on so many connections.
    Calls(Calls, usize),
}

impl Operation {
    fn of(subject: Subject<'_>) -> Self {
        let kind = match subject.work {
            Work::Pgbench(script, clients, _) => Kind::Script(script, clients),
            Work::Http(server, load) => {
                let is_back_office = load.server == server.address(Listener::BackOffice);
                let calls = if is_back_office {
                    Calls::back_office(load.requests, load.expected)
                } else {
                    Calls::public(load.requests, load.expected)
                };
                Kind::Calls(calls, load.connections)
            }
        };
        Self {
            key: subject.key,
            title: subject.title,
            kind,
        }
    }

    /// Its requests, where it is such.
    pub(super) const fn calls(&self) -> Option<&Calls> {
        match &self.kind {
            Kind::Calls(calls, _) => Some(calls),
            Kind::Script(..) => None,
        }
    }
}

/// All that writes, on a stand that is filled with orders for it.
pub(super) async fn all(
    cluster: &Cluster,
    options: &StorageOptions,
    stand: &Stand,
    progress: Progress,
) -> anyhow::Result<Vec<Operation>> {
    let of_stand = &options.stand;
    let me = Operation {
        key: ME,
        title: "`GET /v1/me`: the gate's count".to_owned(),
        kind: Kind::Calls(
            Calls::public(get_any("/v1/me", &stand.tokens()), 200),
            of_stand.concurrency.into(),
        ),
    };
    let mut subjects = write::subjects_on(of_stand, cluster, stand, options.orders, progress).await?;
    subjects.extend(tokens::subjects_on(of_stand, cluster, stand).await?);
    let mut all: Vec<_> = subjects.into_iter().map(Operation::of).chain([me]).collect();
    all.retain(|operation| place(operation.key).is_some());
    all.sort_by_key(|operation| place(operation.key));
    Ok(all)
}

/// Where an operation stands in the report.
pub(super) fn place(key: &str) -> Option<usize> {
    WRITES.iter().position(|other| *other == key)
}
