//! What a few server threads ask the database by, together.

use std::{num::NonZeroU32, sync::Arc};

use oauth::{ApplicationReader, ClientTokens, Gate, RateCounter};
use offers::OfferReader;
use orders::OrderReader;

use crate::{
    accounts::{Applications, IssuedTokens, Rates},
    catalogue::OffersReader,
    connector::Connector,
    gate::TokenGate,
    reads::Reads,
    settings::Gathering,
    trade::OrdersReader,
};

/// The ports whose questions gather. Whoever has a clone of it asks together with the others: the larger a group, the less each of
/// it costs the server. It lives on the runtime that it was made on, which should outlive whoever asks.
#[derive(Clone)]
pub struct Gatherers {
    connector: Arc<Connector>,
    gate: Arc<TokenGate>,
    offers: Arc<OffersReader>,
    orders: Arc<OrdersReader>,
    applications: Arc<Applications>,
    client_tokens: Arc<IssuedTokens>,
    rates: Arc<Rates>,
}

impl Gatherers {
    pub(crate) fn new(
        connector: &Arc<Connector>,
        gathering: Gathering,
        default_rate_limit: NonZeroU32,
        reads: impl Fn(&'static str) -> Reads,
    ) -> Self {
        let (applications, rates) = (reads("applications"), reads("rate_limits"));
        Self {
            connector: Arc::clone(connector),
            gate: Arc::new(TokenGate::new(connector, gathering, default_rate_limit)),
            offers: Arc::new(OffersReader::new(connector, gathering)),
            orders: Arc::new(OrdersReader::new(connector, gathering)),
            applications: Arc::new(Applications::new(connector, applications, gathering)),
            client_tokens: Arc::new(IssuedTokens::new(connector, gathering)),
            rates: Arc::new(Rates::new(connector, rates, gathering)),
        }
    }

    /// Admits requests.
    pub fn gate(&self) -> Arc<dyn Gate> {
        self.gate.clone()
    }

    /// Reads offers; lists of them on a connection of its own.
    pub fn offer_reader(&self) -> Arc<dyn OfferReader> {
        Arc::new(self.offers.beside(&self.connector))
    }

    /// Reads a seller's orders; lists of them on a connection of its own.
    pub fn order_reader(&self) -> Arc<dyn OrderReader> {
        Arc::new(self.orders.beside(&self.connector))
    }

    /// Reads applications.
    pub fn applications(&self) -> Arc<dyn ApplicationReader> {
        self.applications.clone()
    }

    /// Issues the tokens of applications.
    pub fn client_tokens(&self) -> Arc<dyn ClientTokens> {
        self.client_tokens.clone()
    }

    /// Counts calls of the OAuth endpoints.
    pub fn rate_counter(&self) -> Arc<dyn RateCounter> {
        self.rates.clone()
    }
}
