//! Links by which sellers get into the panel: sent to them as invitations, or handed to the marketplace.

use std::sync::Arc;

use actix_web::http::StatusCode;
use async_trait::async_trait;
use kernel::SellerId;
use oauth::Link;
use serde_json::json;
use usecases::operator_links::{self, SignInLink, invite, make_sign_in_link};
use usecases::{ActingOperator, Failure, Transaction, Work};
use web::timestamps::Timestamp;
use web::{Code, Problem, sentence};

use crate::operation::{Context, Operation};
use crate::refusal::{Refusal, Refused};
use crate::reply::Reply;
use crate::request::Parts;
use crate::state::BackOffice;

/// `POST /sellers/{seller}/sign-in-links`
pub(crate) struct MakeSignInLink;

impl Operation for MakeSignInLink {
    type Input = SellerId;

    fn decode(parts: &Parts<'_>) -> Result<SellerId, Refusal> {
        parts.nothing()?;
        Ok(parts.id(0)?)
    }

    async fn execute(seller: SellerId, context: Context) -> Result<Reply, Refusal> {
        let work = SignIn(Making::of(seller, &context)?);
        let answer = |link: SignInLink| {
            let expires_at = Timestamp::new(link.expires_at).to_string();
            Reply::created(&json!({ "url": link.url, "expires_at": expires_at }))
        };
        context.write(work, answer).await
    }
}

/// `POST /sellers/{seller}/invitations`
pub(crate) struct Invite;

impl Operation for Invite {
    type Input = SellerId;

    fn decode(parts: &Parts<'_>) -> Result<SellerId, Refusal> {
        parts.nothing()?;
        Ok(parts.id(0)?)
    }

    async fn execute(seller: SellerId, context: Context) -> Result<Reply, Refusal> {
        if context.office.panel.password(seller).await?.is_some() {
            let reason = "The seller has a password; the sign-in page sends a link for a new one.";
            return Err(Problem::new(Code::Conflict, reason.to_owned()).into());
        }
        let work = Invitation(Making::of(seller, &context)?);
        let answer = |link: Link| {
            let expires_at = Timestamp::new(link.expires_at).to_string();
            Reply::json(StatusCode::ACCEPTED, &json!({ "expires_at": expires_at }))
        };
        context.write(work, answer).await
    }
}

/// A link to be made.
struct Making {
    by: ActingOperator,
    seller: SellerId,
    office: Arc<BackOffice>,
}

impl Making {
    fn of(seller: SellerId, context: &Context) -> Result<Self, Refusal> {
        Ok(Self {
            by: context.operator()?,
            seller,
            office: Arc::clone(&context.office),
        })
    }
}

struct SignIn(Making);

#[async_trait]
impl Work for SignIn {
    type Done = SignInLink;
    type Error = Failure<operator_links::Refusal>;

    async fn run(&self, tx: &dyn Transaction) -> Result<SignInLink, Self::Error> {
        let Making { by, seller, office } = &self.0;
        let public_url = &office.settings.public_url;
        let of = (*by, *seller);
        make_sign_in_link((tx, tx), &*office.randomness, of, public_url, tx.now()).await
    }
}

struct Invitation(Making);

#[async_trait]
impl Work for Invitation {
    type Done = Link;
    type Error = Failure<operator_links::Refusal>;

    async fn run(&self, tx: &dyn Transaction) -> Result<Link, Self::Error> {
        let Making { by, seller, office } = &self.0;
        let public_url = &office.settings.public_url;
        let of = (*by, *seller);
        invite((tx, tx), &*office.randomness, of, public_url, tx.now()).await
    }
}

impl Refused for operator_links::Refusal {
    fn problem(self) -> Problem {
        match self {
            Self::NoSuchSeller => Problem::not_found(),
            Self::SellerClosed => Problem::new(Code::Conflict, sentence::of(&self)),
        }
    }
}
