//! The operator's moves over one application.

use std::num::NonZeroU32;
use std::sync::Arc;

use async_trait::async_trait;
use oauth::{Application, ClientId, RateLimit, Scope, ScopeSet};
use usecases::manage_application::{
    self, Move, Stores, adjust_application, delete_application, move_application,
};
use usecases::{ActingOperator, Failure, Transaction, Work};
use web::decode::{Shape, integer, list, object, optional, resettable, text};
use web::{Code, Problem, sentence};

use super::{ApplicationView, RATE_LIMIT_MAX};
use crate::operation::{Context, Operation};
use crate::refusal::{Refusal, Refused};
use crate::reply::Reply;
use crate::request::Parts;
use crate::state::BackOfficeSettings;

/// `GET /applications/{client_id}`
pub(crate) struct Read;

impl Operation for Read {
    type Input = ClientId;

    fn decode(parts: &Parts<'_>) -> Result<ClientId, Refusal> {
        parts.no_query()?;
        Ok(parts.id(0)?)
    }

    async fn execute(id: ClientId, context: Context) -> Result<Reply, Refusal> {
        let application = context.office.applications.client(id).await?;
        let application = application.ok_or_else(Problem::not_found)?;
        Ok(shown(&context.office.settings)(application)?)
    }
}

/// Shows an application under these settings.
fn shown(
    settings: &Arc<BackOfficeSettings>,
) -> impl Fn(Application) -> Result<Reply, serde_json::Error> + Send + Sync + use<> {
    let settings = Arc::clone(settings);
    move |application| Reply::ok(&ApplicationView::of(&application, &settings))
}

/// `POST /applications/{client_id}/acceptance`
pub(crate) struct Accept;

/// `POST /applications/{client_id}/suspension`
pub(crate) struct Suspend;

/// `POST /applications/{client_id}/reinstatement`
pub(crate) struct Reinstate;

/// An operation that is a move over the status.
trait IsMove: 'static {
    const MOVE: Move;
}

impl IsMove for Accept {
    const MOVE: Move = Move::Accept;
}

impl IsMove for Suspend {
    const MOVE: Move = Move::Suspend;
}

impl IsMove for Reinstate {
    const MOVE: Move = Move::Reinstate;
}

impl<M: IsMove> Operation for M {
    type Input = ClientId;

    fn decode(parts: &Parts<'_>) -> Result<ClientId, Refusal> {
        parts.nothing()?;
        Ok(parts.id(0)?)
    }

    async fn execute(id: ClientId, context: Context) -> Result<Reply, Refusal> {
        let answer = shown(&context.office.settings);
        let work = Changing(context.operator()?, id, Change::Move(M::MOVE));
        context.write(work, answer).await
    }
}

/// `PATCH /applications/{client_id}`
pub(crate) struct Adjust;

impl Operation for Adjust {
    type Input = (ClientId, Option<RateLimit>, Option<ScopeSet>);

    fn decode(parts: &Parts<'_>) -> Result<Self::Input, Refusal> {
        let own = |limit| NonZeroU32::new(limit).map_or(RateLimit::Default, RateLimit::Own);
        let limit = resettable(
            "rate_limit",
            integer(1..=RATE_LIMIT_MAX).map(own),
            RateLimit::Default,
        );
        let scopes = list(text().checked(|name| scope(&name))).at_least(1);
        let body = object((limit, optional("scopes", scopes))).not_empty();
        let (limit, scopes) = parts.json(&body)?;
        let scopes = scopes.map(|scopes| scopes.into_iter().collect());
        Ok((parts.id(0)?, limit, scopes))
    }

    async fn execute((id, limit, scopes): Self::Input, context: Context) -> Result<Reply, Refusal> {
        let answer = shown(&context.office.settings);
        let work = Changing(context.operator()?, id, Change::Adjust(limit, scopes));
        context.write(work, answer).await
    }
}

fn scope(name: &str) -> Result<Scope, String> {
    Scope::parse(name).ok_or_else(|| format!("Must be a known scope; `{name}` is none."))
}

/// What is changed of an application.
#[derive(Clone, Copy)]
enum Change {
    Move(Move),
    Adjust(Option<RateLimit>, Option<ScopeSet>),
}

struct Changing(ActingOperator, ClientId, Change);

#[async_trait]
impl Work for Changing {
    type Done = Application;
    type Error = Failure<manage_application::Refusal>;

    async fn run(&self, tx: &dyn Transaction) -> Result<Application, Self::Error> {
        let Self(by, id, change) = *self;
        match change {
            Change::Move(step) => move_application(stores(tx), by, id, step).await,
            Change::Adjust(limit, scopes) => adjust_application(stores(tx), by, id, (limit, scopes)).await,
        }
    }
}

fn stores(tx: &dyn Transaction) -> Stores<'_> {
    Stores {
        applications: tx,
        panel: tx,
    }
}

/// `DELETE /applications/{client_id}`
pub(crate) struct Delete;

impl Operation for Delete {
    type Input = ClientId;

    fn decode(parts: &Parts<'_>) -> Result<ClientId, Refusal> {
        parts.no_query()?;
        Ok(parts.id(0)?)
    }

    async fn execute(id: ClientId, context: Context) -> Result<Reply, Refusal> {
        let answer = |()| Ok(Reply::nothing());
        let work = Deletion(context.operator()?, id);
        context.write(work, answer).await
    }
}

struct Deletion(ActingOperator, ClientId);

#[async_trait]
impl Work for Deletion {
    type Done = ();
    type Error = Failure<manage_application::Refusal>;

    async fn run(&self, tx: &dyn Transaction) -> Result<(), Self::Error> {
        delete_application(stores(tx), self.0, self.1).await
    }
}

impl Refused for manage_application::Refusal {
    fn problem(self) -> Problem {
        match self {
            Self::NoSuchApplication => Problem::not_found(),
            Self::Impossible(_) | Self::BuiltIn => Problem::new(Code::Conflict, sentence::of(&self)),
        }
    }
}
