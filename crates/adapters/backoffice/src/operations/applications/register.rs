//! A registration, by the rules of the panel.

use std::sync::Arc;

use async_trait::async_trait;
use kernel::{Randomness, SellerId};
use oauth::{Action, RawRegistration, Registrar, Registration, Secret};
use serde_json::json;
use usecases::register_application::{self, Registered, register_application};
use usecases::{ActingOperator, Failure, Transaction, Work};
use web::decode::{FieldSet, boolean, list, nullable, required, text};
use web::{Code, Entry, Problem, sentence};

use crate::operation::{Context, Operation};
use crate::refusal::{Refusal, Refused};
use crate::reply::Reply;
use crate::request::Parts;
use crate::ruled::OrDefault;

/// `POST /sellers/{seller}/applications`
pub(crate) struct Register;

impl Operation for Register {
    type Input = (SellerId, Registration);

    fn decode(parts: &Parts<'_>) -> Result<Self::Input, Refusal> {
        let registration = parts.ruled(fields(), |given| raw(given).check())?;
        Ok((parts.id(0)?, registration))
    }

    async fn execute((owner, registration): Self::Input, context: Context) -> Result<Reply, Refusal> {
        let work = RegisterApplication {
            by: context.operator()?,
            owner,
            registration,
            randomness: Arc::clone(&context.office.randomness),
        };
        let answer = |registered: Registered| {
            Reply::created(&json!({
                "client_id": registered.client_id.to_string(),
                "client_secret": registered.client_secret.as_ref().map(Secret::reveal),
                "status": registered.status.as_str(),
            }))
        };
        context.write(work, answer).await
    }
}

type Given = (
    String,
    Option<String>,
    String,
    String,
    String,
    Option<Vec<String>>,
    Vec<String>,
    bool,
);

fn fields() -> impl FieldSet<Values = Given> {
    (
        OrDefault(required("name", text())),
        OrDefault(nullable("description", text())),
        OrDefault(required("documentation_url", text())),
        OrDefault(required("purpose", text())),
        OrDefault(required("client_type", text())),
        OrDefault(nullable("redirect_uris", list(text()))),
        OrDefault(required("scopes", list(text()))),
        OrDefault(required("accept_terms", boolean())),
    )
}

fn raw(given: Given) -> RawRegistration {
    let (name, description, documentation_url, purpose, client_type, redirect_uris, scopes, accept_terms) =
        given;
    RawRegistration {
        name,
        description,
        documentation_url,
        purpose,
        client_type,
        redirect_uris: redirect_uris.unwrap_or_default(),
        scopes,
        accept_terms,
    }
}

struct RegisterApplication {
    by: ActingOperator,
    owner: SellerId,
    registration: Registration,
    randomness: Arc<dyn Randomness>,
}

#[async_trait]
impl Work for RegisterApplication {
    type Done = Registered;
    type Error = Failure<register_application::Refusal>;

    async fn run(&self, tx: &dyn Transaction) -> Result<Registered, Self::Error> {
        let (randomness, registration) = (self.randomness.as_ref(), self.registration.clone());
        let owner = (self.owner, Registrar::Marketplace);
        let registered = register_application(tx, tx, randomness, owner, registration, tx.now()).await?;
        let action = Action::ApplicationRegistered;
        self.by.note(tx, action, registered.client_id).await?;
        Ok(registered)
    }
}

impl Refused for register_application::Refusal {
    fn problem(self) -> Problem {
        match self {
            Self::NoSuchSeller => Problem::not_found(),
            Self::SellerClosed => Problem::new(Code::Conflict, sentence::of(&self)),
            Self::NameTaken => Entry::new(Code::Conflict, sentence::of(&self)).at("name").into(),
        }
    }
}
