//! Personal tokens: issued and revoked by the rules of the panel.

use accounts::{Action, PersonalTokenRequest};
use chrono::{DateTime, Utc};
use kernel::SellerId;
use oauth::FamilyId;
use serde_json::json;
use usecases::Transaction;
use usecases::personal_tokens::{self, issue_personal_token, revoke_personal_token};
use usecases::sellers::NotOpen;
use web::decode::{date_time, list, object, text};
use web::operation::{Call, Incoming, Operation, Write};
use web::reply::Reply;
use web::{Code, Error, MapRefusal, Problem, Violations, to_sentence};

use crate::policy::operator;
use crate::validation;
use crate::{Access, BackOffice};

/// Issues a token for a seller's account.
pub(crate) struct IssueToken {
    seller: SellerId,
    request: PersonalTokenRequest,
}

impl Operation<BackOffice> for IssueToken {
    const SCOPE: Access = Access::Write;

    fn decode(incoming: &Incoming<'_>, _: &Call<BackOffice>) -> Result<Option<Self>, Violations> {
        let request = object!(draft PersonalTokenRequest {
            name: required(text()),
            scopes: required(list(text())),
            expires_at: nullable(date_time()),
        });
        // The transaction checks by the database's clock that the expiry is in the future.
        let check =
            |request: PersonalTokenRequest| request.clone().check(DateTime::<Utc>::MIN_UTC).map(|_| request);
        let request = validation::body(incoming, &request, check)?;
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
        incoming.no_query()?;
        let ids = incoming.id(0).zip(incoming.id(1));
        Ok(ids.map(|(seller, token)| Self { seller, token }))
    }
}

impl Write<BackOffice> for RevokeToken {
    async fn apply(&self, call: &Call<BackOffice>, tx: &dyn Transaction) -> Result<Reply, Error> {
        let revoked = revoke_personal_token(tx, self.seller, self.token).await;
        revoked.map_refusal(problem)?;
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
        personal_tokens::Refusal::Invalid(broken) => Problem::of(validation::entries(&broken)),
        personal_tokens::Refusal::Account(NotOpen::SellerClosed)
        | personal_tokens::Refusal::TooMany
        | personal_tokens::Refusal::Suspended => Problem::new(Code::Conflict, to_sentence(&refusal)),
    }
}
