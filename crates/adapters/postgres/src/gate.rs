//! The gate: looks tokens up and counts their applications, at each request anew.

mod gathered;
mod router;
mod row;

use std::{num::NonZeroU32, sync::Arc};

use async_trait::async_trait;
use kernel::StoreError;
use oauth::{Admission, Gate, TokenKey};

use crate::{connector::Connector, gather::Gatherer, settings::Gathering};

/// The gate of one server thread.
pub(crate) enum TokenGate {
    /// All requests in flight in one statement.
    Gathered(Gatherer<gathered::Requests>),
    /// One request per statement.
    Router(router::Router),
}

impl TokenGate {
    pub(crate) fn new(connector: &Arc<Connector>, gathering: Gathering, default_limit: NonZeroU32) -> Self {
        let connector = Arc::clone(connector);
        match gathering {
            Gathering::Grouped => {
                Self::Gathered(Gatherer::new(gathered::Requests { default_limit }, connector))
            }
            Gathering::Router => Self::Router(router::Router::new(connector, default_limit)),
        }
    }
}

#[async_trait]
impl Gate for TokenGate {
    async fn admit(&self, token: TokenKey) -> Result<Option<Admission>, StoreError> {
        match self {
            Self::Gathered(gatherer) => gatherer.ask(token).await,
            Self::Router(router) => router.admit(token).await,
        }
    }
}
