//! What the rounds measure: the token endpoint, and pgbench storing the same rows.

use super::requests::{Refreshes, client_credentials};
use super::{key, scripts, seed};
use crate::cluster::Cluster;
use crate::maker::Maker;
use crate::measure::Subject;
use crate::options::StandOptions;
use crate::requests;
use crate::stand::Stand;

/// What is asked, with the status that answers it.
#[derive(Clone, Debug)]
pub(super) struct Calls {
    /// Tokens of applications.
    pub(super) issuing: requests::Calls,
    /// Refreshes.
    pub(super) refreshing: requests::Calls,
}

impl Calls {
    /// On a stand, with so many families to refresh, one for each connection.
    pub(super) async fn on(families: u16, cluster: &Cluster, stand: &Stand) -> anyhow::Result<Self> {
        let tokens = seed::families(cluster, &stand.database, families).await?;
        Ok(Self {
            issuing: requests::Calls::public(client_credentials(&stand.sellers), 200),
            refreshing: requests::Calls::public(Refreshes::of_all(&stand.sellers, tokens), 200),
        })
    }
}

/// The subjects in the report's order.
pub(super) fn of<'a>(options: &StandOptions, stand: &'a Stand, calls: &Calls) -> Vec<Subject<'a>> {
    let (database, applications) = (&stand.database, stand.sellers.len());
    let maker = Maker { options };
    let call = |key, title: &str, calls| maker.calls(key, title, &stand.server, calls);
    vec![
        maker.pgbench(
            key::TOKEN_ROWS,
            "`pgbench`: the inserts of a client's token, a transaction",
            scripts::token(database, applications),
        ),
        maker.pgbench(
            key::TOKEN_STATEMENT,
            "`pgbench`: the same as one statement",
            scripts::token_by_one_statement(database, applications),
        ),
        call(
            key::TOKEN,
            "`POST /oauth/token`, `client_credentials`",
            &calls.issuing,
        ),
        maker.pgbench(
            key::REFRESH_ROWS,
            "`pgbench`: the transaction of a refresh",
            scripts::refresh(database, applications),
        ),
        call(
            key::REFRESH,
            "`POST /oauth/token`, `refresh_token`",
            &calls.refreshing,
        ),
    ]
}
