//! Single things of sellers, read by their ids outside a transaction: those of many sellers in one statement, or one by one.

use std::{marker::PhantomData, sync::Arc};

use async_trait::async_trait;
use diesel::QueryResult;
use diesel_async::AsyncPgConnection;
use kernel::{SellerId, StoreError};
use uuid::Uuid;

use crate::{
    connector::Connector,
    gather::{Gatherer, Grouped},
    line::Line,
    settings::Gathering,
};

/// A kind of things that belong to sellers.
#[async_trait]
pub(crate) trait Keyed: Send + Sync + 'static {
    /// Names it in the metrics.
    const NAME: &'static str;
    /// As it lies in the table.
    type Row: Send + TryInto<Self::Item, Error = StoreError>;
    /// As the domain knows it.
    type Item: Send + 'static;

    /// Whose it is, and its id.
    fn key(item: &Self::Item) -> (SellerId, Uuid);

    /// The row of a seller with an id; empty when there is none.
    async fn one(connection: &AsyncPgConnection, seller: Uuid, id: Uuid) -> QueryResult<Vec<Self::Row>>;

    /// The rows of these sellers with these ids, each with the place of its pair, counted from 1.
    async fn many(
        connection: &AsyncPgConnection,
        sellers: Vec<Uuid>,
        ids: Vec<Uuid>,
    ) -> QueryResult<Vec<(i64, Self::Row)>>;
}

/// Reads them for one server thread.
pub(crate) enum ById<K: Keyed> {
    Gathered(Gatherer<Many<K>>),
    OneByOne(Line),
}

impl<K: Keyed> ById<K> {
    pub(crate) fn new(connector: &Arc<Connector>, gathering: Gathering) -> Self {
        let connector = Arc::clone(connector);
        match gathering {
            Gathering::Grouped => Self::Gathered(Gatherer::new(Many(PhantomData), connector)),
            Gathering::Router => Self::OneByOne(Line::new(connector, K::NAME)),
        }
    }

    pub(crate) async fn read(&self, seller: SellerId, id: Uuid) -> Result<Option<K::Item>, StoreError> {
        match self {
            Self::Gathered(gatherer) => gatherer.ask((seller, id)).await,
            Self::OneByOne(line) => {
                let ask = line.ask(|link| async move { K::one(link.connection(), seller.uuid(), id).await });
                ask.await?.pop().map(TryInto::try_into).transpose()
            }
        }
    }
}

/// Single things of any sellers in one statement.
pub(crate) struct Many<K>(PhantomData<K>);

#[async_trait]
impl<K: Keyed> Grouped for Many<K> {
    const NAME: &'static str = K::NAME;
    type Question = (SellerId, Uuid);
    type Answer = Option<K::Item>;

    async fn answer(
        &self,
        connection: &AsyncPgConnection,
        questions: &[Self::Question],
    ) -> QueryResult<Vec<Result<Option<K::Item>, StoreError>>> {
        let (sellers, ids) = questions.iter().map(|(seller, id)| (seller.uuid(), *id)).unzip();
        let rows = K::many(connection, sellers, ids).await?;
        let mut answers = questions.iter().map(|_| Ok(None)).collect::<Vec<_>>();
        for (n, row) in rows {
            let place = usize::try_from(n - 1).unwrap_or(usize::MAX);
            if let (Some(answer), Some(question)) = (answers.get_mut(place), questions.get(place)) {
                *answer = row
                    .try_into()
                    .and_then(|item| asked_for::<K>(item, *question))
                    .map(Some);
            }
        }
        Ok(answers)
    }
}

/// The last line between two sellers whose questions travel together.
fn asked_for<K: Keyed>(item: K::Item, question: (SellerId, Uuid)) -> Result<K::Item, StoreError> {
    if K::key(&item) == question {
        return Ok(item);
    }
    Err(StoreError::unexpected(
        "a row came back for another question than its own",
    ))
}
