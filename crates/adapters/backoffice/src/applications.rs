//! Applications: registration for a seller by the rules of the panel, and the operator's actions on them.

use std::num::NonZeroU32;

use accounts::Action;
use kernel::SellerId;
use oauth::{
    Application, ClientId, ClientType, MAX_REDIRECT_URIS, Purpose, RateLimit, Registrar, Registration, Rule,
    Scope, ScopeSet, Secret, Transition, application_name, description, documentation_link, redirect_uri,
};
use serde::Serialize;
use serde_json::json;
use usecases::manage_application::{
    ManagementRefusal, adjust_application, change_status, delete_application,
};
use usecases::own_applications::{RegistrationRefusal, register_application};
use usecases::sellers::NotOpen;
use usecases::{Acting as _, Transaction};
use web::decode::{Shape, boolean, integer, list, object, one_of, text};
use web::openapi::Parameter;
use web::operation::{Call, Incoming, Read, Write};
use web::reply::Reply;
use web::timestamps::Timestamp;
use web::view::View;
use web::{Error, MapRefusal, Problem, ServiceSettings, Violations};

use crate::policy::{conflict, operator};
use crate::sellers::{NOT_A_CURSOR, existing, page};
use crate::{Access, BackOffice};

/// The largest limit that an operator can set, in requests per minute (D104).
const MAX_RATE_LIMIT: u32 = 10_000_000;

web::view! {
    /// An application as an operator sees it. `requested_scopes` are beyond what was granted and without
    /// effect until accepted; `rate_limit` is the effective one: its own, or the service's default.
    ApplicationView<'a> of (application, service): (&'a Application, &'a ServiceSettings) {
        "client_id" => application.client_id.to_string(),
        "seller_id" => application.owner.uuid(),
        "name" => application.name,
        "description" => application.description,
        "documentation_url" => application.documentation_url,
        "purpose" => application.purpose.as_str(),
        "client_type" => application.client_type.as_str(),
        "redirect_uris" => application.redirect_uris,
        "scopes" => application.scopes.names(),
        "requested_scopes" => application.requested.names(),
        "status" => application.status.as_str(),
        "rate_limit" => application.rate_limit.unwrap_or(service.default_rate_limit).get(),
        "created_at" => Timestamp::new(application.created_at),
    }
}

/// Registers an application for a seller.
pub(crate) struct RegisterApplication {
    owner: SellerId,
    registration: Registration,
}

impl Write<BackOffice> for RegisterApplication {
    const SCOPE: Access = Access::Write;

    fn decode(incoming: &Incoming<'_>, _: &Call<BackOffice>) -> Result<Option<Self>, Violations> {
        let registration = incoming.json(&registration())?;
        Ok(incoming.id(0).map(|owner| Self { owner, registration }))
    }

    async fn apply(&self, call: &Call<BackOffice>, tx: &dyn Transaction) -> Result<Reply, Error> {
        let (randomness, registration) = (call.state.ports.randomness.as_ref(), self.registration.clone());
        let (owner, by) = (self.owner, Registrar::Marketplace);
        let most = call.state.settings.applications_per_seller;
        let registered = register_application(tx, tx, randomness, owner, by, registration, most, tx.now());
        let registered = registered.await.map_refusal(registration_problem)?;
        let action = Action::ApplicationRegistered;
        operator(call)?.log(tx, action, registered.client_id).await?;
        Reply::created(&json!({
            "client_id": registered.client_id.to_string(),
            "client_secret": registered.client_secret.as_ref().map(Secret::reveal),
            "status": registered.status.as_str(),
        }))
    }
}

fn registration() -> impl Shape<Value = Registration> {
    let optional = |text| description(Some(text));
    let address = text().checked(redirect_uri).distinct("Must not be given twice.");
    let addresses = list(address, 0..=MAX_REDIRECT_URIS);
    let accepted = |terms: bool| terms.then_some(()).ok_or(Rule::TermsAccepted);
    object!(
        name: required(text().checked(application_name)),
        description: nullable(text().checked(optional)).flatten(),
        documentation_url: required(text().checked(documentation_link)),
        purpose: required(one_of(&Purpose::ALL, Purpose::as_str)),
        client_type: required(one_of(&ClientType::ALL, ClientType::as_str)),
        redirect_uris: nullable(addresses).unwrap_or_default(),
        scopes: required(scopes()),
        accept_terms: required(boolean().checked(accepted))
        => {
            let () = accept_terms;
            Registration { name, description, documentation_url, purpose, client_type, redirect_uris, scopes }
        }
    )
}

fn registration_problem(refusal: RegistrationRefusal) -> Problem {
    match refusal {
        RegistrationRefusal::Account(NotOpen::NoSuchSeller) => Problem::not_found(),
        RegistrationRefusal::Account(NotOpen::SellerClosed)
        | RegistrationRefusal::TooMany
        | RegistrationRefusal::TooOften(_) => conflict(&refusal).into(),
        RegistrationRefusal::NameTaken => conflict(&refusal).at("name").into(),
    }
}

/// An application of a seller; `connected_at` is null unless the seller has connected it.
#[derive(Serialize)]
struct ListedView<'a> {
    #[serde(flatten)]
    application: ApplicationView<'a>,
    connected_at: Option<Timestamp>,
}

/// Lists the applications that a seller has registered or connected, newest first.
pub(crate) struct ListApplications {
    seller: SellerId,
    /// The last application of the page before.
    after: Option<ClientId>,
    limit: u16,
}

impl Read<BackOffice> for ListApplications {
    const SCOPE: Access = Access::Read;
    const QUERY: &'static [Parameter] = &[Parameter::undocumented("limit"), Parameter::undocumented("after")];

    fn decode(incoming: &Incoming<'_>, _: &Call<BackOffice>) -> Result<Option<Self>, Violations> {
        let seller = incoming.id(0);
        incoming.query(|query| {
            let after = query.parsed("after", |text| text.parse().map_err(|_| NOT_A_CURSOR));
            let limit = query.limit();
            seller.map(|seller| Self { seller, after, limit })
        })
    }

    async fn execute(self, call: Call<BackOffice>) -> Result<Reply, Error> {
        let Self { seller, after, limit } = self;
        existing(seller, &call).await?;
        let (applications, service) = (&call.state.applications, &call.state.ports.service);
        let found = applications.applications_at(seller, after, limit.saturating_add(1));
        page(
            &found.await?,
            limit,
            |listed| ListedView {
                application: ApplicationView::whole((&listed.application, service)),
                connected_at: listed.connected_at.map(Timestamp::new),
            },
            |last| last.application.client_id.to_string(),
        )
        .await
    }
}

pub(crate) struct ReadApplication(ClientId);

impl Read<BackOffice> for ReadApplication {
    const SCOPE: Access = Access::Read;

    fn decode(incoming: &Incoming<'_>, _: &Call<BackOffice>) -> Result<Option<Self>, Violations> {
        Ok(incoming.id(0).map(Self))
    }

    async fn execute(self, call: Call<BackOffice>) -> Result<Reply, Error> {
        let application = call.state.applications.application(self.0).await?;
        let application = application.ok_or_else(Problem::not_found)?;
        Reply::ok(&ApplicationView::whole((&application, &call.state.ports.service)))
    }
}

/// Sets an application's limit, its scopes, or both.
pub(crate) struct AdjustApplication {
    id: ClientId,
    limit: Option<RateLimit>,
    scopes: Option<ScopeSet>,
}

impl Write<BackOffice> for AdjustApplication {
    const SCOPE: Access = Access::Write;

    fn decode(incoming: &Incoming<'_>, _: &Call<BackOffice>) -> Result<Option<Self>, Violations> {
        let own = |limit| NonZeroU32::new(limit).map_or(RateLimit::Default, RateLimit::Own);
        let body = object!(
            rate_limit: resettable(integer(1..=MAX_RATE_LIMIT).map(own), RateLimit::Default),
            scopes: optional(scopes())
            => (rate_limit, scopes)
        );
        let (limit, scopes) = incoming.json(&body.not_empty())?;
        Ok(incoming.id(0).map(|id| Self { id, limit, scopes }))
    }

    async fn apply(&self, call: &Call<BackOffice>, tx: &dyn Transaction) -> Result<Reply, Error> {
        let by = operator(call)?;
        let adjusted = adjust_application(tx, tx, by, self.id, self.limit, self.scopes, tx.now()).await;
        let application = adjusted.map_refusal(problem)?;
        Reply::ok(&ApplicationView::whole((&application, &call.state.ports.service)))
    }
}

/// At least one scope.
pub(crate) fn scopes() -> impl Shape<Value = ScopeSet> {
    let scope = |name: String| Scope::parse(&name).ok_or(Rule::KnownScope(name));
    let some = list(text().checked(scope), 1..=usize::MAX);
    some.map(|scopes| scopes.into_iter().collect())
}

/// Deletes an application permanently.
pub(crate) struct DeleteApplication(ClientId);

impl Write<BackOffice> for DeleteApplication {
    const SCOPE: Access = Access::Write;

    fn decode(incoming: &Incoming<'_>, _: &Call<BackOffice>) -> Result<Option<Self>, Violations> {
        Ok(incoming.id(0).map(Self))
    }

    async fn apply(&self, call: &Call<BackOffice>, tx: &dyn Transaction) -> Result<Reply, Error> {
        let deleted = delete_application(tx, tx, operator(call)?, self.0).await;
        deleted.map_refusal(problem)?;
        Ok(Reply::no_content())
    }
}

/// Accepts an application, suspends it or reinstates it, as the end of the path says.
pub(crate) struct MoveApplication {
    id: ClientId,
    transition: Transition,
    /// The scopes that the operator saw asked for.
    seen: Option<ScopeSet>,
}

impl Write<BackOffice> for MoveApplication {
    const SCOPE: Access = Access::Write;

    fn decode(incoming: &Incoming<'_>, _: &Call<BackOffice>) -> Result<Option<Self>, Violations> {
        let body = object!(scopes: optional(scopes()) => scopes);
        let (transition, seen) = match incoming.head.uri.path().rsplit('/').next() {
            Some("acceptance") => (Transition::Accept, incoming.optional_json(&body)?.flatten()),
            Some("suspension") => (Transition::Suspend, incoming.no_body().map(|()| None)?),
            Some("reinstatement") => (Transition::Reinstate, incoming.no_body().map(|()| None)?),
            _ => return Ok(None),
        };
        Ok(incoming.id(0).map(|id| Self { id, transition, seen }))
    }

    async fn apply(&self, call: &Call<BackOffice>, tx: &dyn Transaction) -> Result<Reply, Error> {
        let (by, now) = (operator(call)?, tx.now());
        let moved = change_status(tx, tx, by, self.id, self.transition, self.seen, now).await;
        let application = moved.map_refusal(problem)?;
        Reply::ok(&ApplicationView::whole((&application, &call.state.ports.service)))
    }
}

fn problem(refusal: ManagementRefusal) -> Problem {
    match refusal {
        ManagementRefusal::NoSuchApplication => Problem::not_found(),
        ManagementRefusal::Transition(_) | ManagementRefusal::BuiltIn => conflict(&refusal).into(),
    }
}
