//! Personal tokens: issued and revoked by the rules of the panel.

use accounts::{Action, PersonalTokenRequest, token_name};
use kernel::SellerId;
use oauth::{FamilyId, ScopeSet};
use serde_json::json;
use usecases::Transaction;
use usecases::personal_tokens::{self, issue_personal_token};
use usecases::sellers::NotOpen;
use web::decode::{Shape, date_time, object, text};
use web::operation::{Call, Incoming, Operation, Write};
use web::reply::Reply;
use web::{Code, Error, MapRefusal, Problem, Violations, to_sentence};

use crate::applications::scopes;
use crate::policy::operator;
use crate::{Access, BackOffice};

/// Issues a token for a seller's account.
pub(crate) struct IssueToken {
    seller: SellerId,
    request: PersonalTokenRequest,
}

impl Operation<BackOffice> for IssueToken {
    const SCOPE: Access = Access::Write;

    fn decode(incoming: &Incoming<'_>, _: &Call<BackOffice>) -> Result<Option<Self>, Violations> {
        let names = |scopes: ScopeSet| scopes.iter().map(|scope| scope.to_string()).collect::<Vec<_>>();
        // The transaction checks by the database's clock that the expiry is in the future.
        let request = object!(PersonalTokenRequest {
            name: required(text().checked(token_name)),
            scopes: required(scopes().map(names)),
            expires_at: nullable(date_time()),
        });
        let request = incoming.json(&request)?;
        Ok(incoming.id(0).map(|seller| Self { seller, request }))
    }
}

impl Write<BackOffice> for IssueToken {
    async fn apply(&self, call: &Call<BackOffice>, tx: &dyn Transaction) -> Result<Reply, Error> {
        let (randomness, request) = (call.state.ports.randomness.as_ref(), self.request.clone());
        let token = issue_personal_token(tx, tx, randomness, self.seller, request, tx.now())
            .await
            .map_refusal(problem)?;
        let action = Action::PersonalTokenCreated;
        let id = token.key().family;
        operator(call)?.log(tx, action, id).await?;
        Reply::created(&json!({ "id": id.to_string(), "token": token.reveal() }))
    }
}

/// Revokes a token by its id.
pub(crate) struct RevokeToken {
    seller: SellerId,
    token: FamilyId,
}

impl Operation<BackOffice> for RevokeToken {
    const SCOPE: Access = Access::Write;

    fn decode(incoming: &Incoming<'_>, _: &Call<BackOffice>) -> Result<Option<Self>, Violations> {
        let ids = incoming.id(0).zip(incoming.id(1));
        Ok(ids.map(|(seller, token)| Self { seller, token }))
    }
}

impl Write<BackOffice> for RevokeToken {
    async fn apply(&self, call: &Call<BackOffice>, tx: &dyn Transaction) -> Result<Reply, Error> {
        if !tx.revoke_personal_token(self.seller, self.token).await? {
            return Err(Problem::not_found().into());
        }
        let action = Action::PersonalTokenRevoked;
        operator(call)?.log(tx, action, self.token).await?;
        Ok(Reply::no_content())
    }
}

fn problem(refusal: personal_tokens::Refusal) -> Problem {
    match refusal {
        personal_tokens::Refusal::Account(NotOpen::NoSuchSeller) | personal_tokens::Refusal::NoSuchToken => {
            Problem::not_found()
        }
        personal_tokens::Refusal::Invalid(broken) => broken.into(),
        personal_tokens::Refusal::Account(NotOpen::SellerClosed)
        | personal_tokens::Refusal::TooMany
        | personal_tokens::Refusal::Suspended => Problem::new(Code::Conflict, to_sentence(&refusal)),
    }
}
