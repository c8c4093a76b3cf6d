//! Personal tokens: issued and revoked by the rules of the panel.

use accounts::{NewPersonalToken, token_name};
use kernel::SellerId;
use oauth::FamilyId;
use serde_json::json;
use usecases::Transaction;
use usecases::personal_tokens::{PersonalTokenRefusal, issue_personal_token, revoke_personal_token};
use usecases::sellers::NotOpen;
use web::decode::{Shape, date_time, object, text};
use web::operation::{Call, Incoming, Write};
use web::reply::Reply;
use web::{Entry, Error, MapRefusal, Problem, Violations, to_sentence};

use crate::applications::scopes;
use crate::policy::{conflict, operator};
use crate::{Access, BackOffice};

/// Issues a token for a seller's account.
pub(crate) struct IssueToken {
    seller: SellerId,
    new: NewPersonalToken,
}

impl Write<BackOffice> for IssueToken {
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

    async fn apply(&self, call: &Call<BackOffice>, tx: &dyn Transaction) -> Result<Reply, Error> {
        let (randomness, by) = (call.state.ports.randomness.as_ref(), operator(call)?);
        let issued = issue_personal_token(tx, tx, randomness, by, self.seller, self.new.clone(), tx.now());
        let token = issued.await.map_refusal(problem)?;
        Reply::created(&json!({ "id": token.key().family.to_string(), "token": token.reveal() }))
    }
}

/// Revokes a token by its id.
pub(crate) struct RevokeToken {
    seller: SellerId,
    token: FamilyId,
}

impl Write<BackOffice> for RevokeToken {
    const SCOPE: Access = Access::Write;

    fn decode(incoming: &Incoming<'_>, _: &Call<BackOffice>) -> Result<Option<Self>, Violations> {
        let ids = incoming.id(0).zip(incoming.id(1));
        Ok(ids.map(|(seller, token)| Self { seller, token }))
    }

    async fn apply(&self, call: &Call<BackOffice>, tx: &dyn Transaction) -> Result<Reply, Error> {
        let revoked = revoke_personal_token(tx, operator(call)?, self.seller, self.token);
        revoked.await.map_refusal(problem)?;
        Ok(Reply::no_content())
    }
}

fn problem(refusal: PersonalTokenRefusal) -> Problem {
    match refusal {
        PersonalTokenRefusal::Account(NotOpen::NoSuchSeller) | PersonalTokenRefusal::NoSuchToken => {
            Problem::not_found()
        }
        PersonalTokenRefusal::Expired => Entry::validation("expires_at", to_sentence(&refusal)).into(),
        PersonalTokenRefusal::Account(NotOpen::SellerClosed)
        | PersonalTokenRefusal::TooMany
        | PersonalTokenRefusal::Suspended => conflict(&refusal).into(),
    }
}
