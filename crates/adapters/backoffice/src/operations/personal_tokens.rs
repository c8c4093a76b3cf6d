//! Personal tokens: issued and revoked as the panel does.

use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use kernel::{Randomness, SellerId};
use oauth::{Action, FamilyId, PersonalTokenRequest};
use serde_json::json;
use usecases::personal_tokens::{self, Issued, Stores, issue_personal_token, revoke_personal_token};
use usecases::{ActingOperator, Failure, Transaction, Work};
use web::decode::{date_time, list, nullable, required, text};
use web::{Code, Problem, sentence};

use crate::operation::{Context, Operation};
use crate::refusal::{Refusal, Refused};
use crate::reply::Reply;
use crate::request::Parts;
use crate::ruled::{self, OrDefault};

/// `POST /sellers/{seller}/personal-tokens`
pub(crate) struct IssueToken;

impl Operation for IssueToken {
    type Input = (SellerId, PersonalTokenRequest);

    fn decode(parts: &Parts<'_>) -> Result<Self::Input, Refusal> {
        let fields = (
            OrDefault(required("name", text())),
            OrDefault(required("scopes", list(text()))),
            OrDefault(nullable("expires_at", date_time())),
        );
        let request = parts.ruled(fields, |(name, scopes, expires_at)| {
            let request = PersonalTokenRequest {
                name,
                scopes,
                expires_at,
            };
            // Whether the expiry lies in the future is judged by the database's clock, in the transaction.
            request.clone().check(DateTime::<Utc>::MIN_UTC).map(|_| request)
        })?;
        Ok((parts.id(0)?, request))
    }

    async fn execute((seller, request): Self::Input, context: Context) -> Result<Reply, Refusal> {
        let work = Issue {
            by: context.operator()?,
            seller,
            request,
            randomness: Arc::clone(&context.office.randomness),
        };
        let answer = |issued: Issued| {
            Reply::created(&json!({ "id": issued.id.to_string(), "token": issued.token.token.reveal() }))
        };
        context.write(work, answer).await
    }
}

struct Issue {
    by: ActingOperator,
    seller: SellerId,
    request: PersonalTokenRequest,
    randomness: Arc<dyn Randomness>,
}

#[async_trait]
impl Work for Issue {
    type Done = Issued;
    type Error = Failure<personal_tokens::Refusal>;

    async fn run(&self, tx: &dyn Transaction) -> Result<Issued, Self::Error> {
        let stores = Stores {
            sellers: tx,
            applications: tx,
            tokens: tx,
        };
        let (randomness, request) = (self.randomness.as_ref(), self.request.clone());
        let issued = issue_personal_token(stores, randomness, self.seller, request, tx.now()).await?;
        self.by.note(tx, Action::PersonalTokenMade, issued.id).await?;
        Ok(issued)
    }
}

/// `DELETE /sellers/{seller}/personal-tokens/{token}`
pub(crate) struct RevokeToken;

impl Operation for RevokeToken {
    type Input = (SellerId, FamilyId);

    fn decode(parts: &Parts<'_>) -> Result<Self::Input, Refusal> {
        parts.no_query()?;
        Ok((parts.id(0)?, parts.id(1)?))
    }

    async fn execute((seller, token): Self::Input, context: Context) -> Result<Reply, Refusal> {
        let answer = |()| Ok(Reply::nothing());
        let work = Revoke(context.operator()?, seller, token);
        context.write(work, answer).await
    }
}

struct Revoke(ActingOperator, SellerId, FamilyId);

#[async_trait]
impl Work for Revoke {
    type Done = ();
    type Error = Failure<personal_tokens::Refusal>;

    async fn run(&self, tx: &dyn Transaction) -> Result<(), Self::Error> {
        let Self(by, seller, token) = *self;
        revoke_personal_token(tx, seller, token).await?;
        by.note(tx, Action::PersonalTokenRevoked, token).await?;
        Ok(())
    }
}

impl Refused for personal_tokens::Refusal {
    fn problem(self) -> Problem {
        match self {
            Self::NoSuchSeller | Self::NoSuchToken => Problem::not_found(),
            Self::Invalid(broken) => Problem::validation(ruled::entries(&broken)),
            Self::SellerClosed | Self::TooMany => Problem::new(Code::Conflict, sentence::of(&self)),
        }
    }
}
