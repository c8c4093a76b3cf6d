//! Personal tokens: issued and revoked by the rules of the panel.

use accounts::{Action, NewPersonalToken, token_name};
use kernel::SellerId;
use oauth::FamilyId;
use serde_json::json;
use usecases::Transaction;
use usecases::personal_tokens::{self, issue_personal_token};
use usecases::sellers::NotOpen;
use web::decode::{Shape, date_time, object, text};
use web::operation::{Call, Incoming, Operation, Write};
use web::reply::Reply;
use web::{Code, Entry, Error, MapRefusal, Problem, Violations, to_sentence};

use crate::applications::scopes;
use crate::policy::operator;
use crate::{Access, BackOffice};

/// Issues a token for a seller's account.
pub(crate) struct IssueToken {
    seller: SellerId,
    new: NewPersonalToken,
}

impl Operation<BackOffice> for IssueToken {
    const SCOPE: Access = Access::Write;

    fn decode(incoming: &Incoming<'_>, _: &Call<BackOffice>) -> Result<Option<Self>, Violations> {
        // The transaction checks by the database's clock that the expiry is in the future.
        let new = object!(NewPersonalToken {
            name: required(text().checked(token_name)),
            scopes: required(scopes()),
            expires_at: nullable(date_time()),
        });
        let new = incoming.json(&new)?;
        Ok(incoming.id(0).map(|seller| Self { seller, new }))
    }
}

impl Write<BackOffice> for IssueToken {
    async fn apply(&self, call: &Call<BackOffice>, tx: &dyn Transaction) -> Result<Reply, Error> {
        let (randomness, new) = (call.state.ports.randomness.as_ref(), self.new.clone());
        let token = issue_personal_token(tx, tx, randomness, self.seller, new, tx.now())
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
        personal_tokens::Refusal::Expired => Entry::validation("expires_at", to_sentence(&refusal)).into(),
        personal_tokens::Refusal::Account(NotOpen::SellerClosed)
        | personal_tokens::Refusal::TooMany
        | personal_tokens::Refusal::Suspended => Problem::new(Code::Conflict, to_sentence(&refusal)),
    }
}
