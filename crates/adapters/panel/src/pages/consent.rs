//! `/panel/consent`: the screen on which a seller lets an application in, or not.

mod deciding;

use std::convert::Infallible;
use std::sync::Arc;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use askama::Template;
use kernel::SellerId;
use oauth::{Application, ConsentRefusal, ConsentTicket, Decision, ScopeSet, Seller};
use url::Url;
use usecases::consent::{Outcome, Shown, release, show};
use usecases::{Failure, consent_ticket};

use self::deciding::Deciding;
use super::scope_list::{Granted, granted};
use super::sign_out;
use crate::change::change;
use crate::fields::Fields;
use crate::frame::Frame;
use crate::next::Next;
use crate::refusal::Refusal;
use crate::reply::see_other;
use crate::security;
use crate::visit::{Member, Visit};

/// How often a screen is looked at where the answer to the COMMIT is lost each time.
const LOOKS: u32 = 3;

#[derive(Template)]
#[template(path = "consent.html")]
struct Page {
    frame: Frame,
    heading: String,
    owner: String,
    documentation_url: Option<String>,
    seller: Seller,
    scopes: Vec<Granted>,
    warns: bool,
    handle: String,
    after: String,
}

/// GET: the first look binds the screen to the session. What cannot be granted whatever the seller decides is answered at once.
pub(crate) async fn page(member: Member) -> Result<HttpResponse, Refusal> {
    let handle = member.visit.query.get("request").unwrap_or_default().to_owned();
    let ticket = opened(&member.visit, &handle)?;
    let application = member
        .visit
        .panel
        .applications
        .client(ticket.request.client_id)
        .await?;
    let mut looks = 1;
    let shown = loop {
        match look(&member, &ticket, application.as_ref()).await {
            // Looking again shows the same, whether or not the first look stands.
            Err(refusal) if refusal.is_unknown() && looks < LOOKS => looks += 1,
            looked => break looked?,
        }
    };
    match (shown, application) {
        (Shown::Screen(scopes), Some(application)) => {
            screen(&member, (&ticket, handle), &application, scopes).await
        }
        (Shown::Answered(error), _) => answered(&member.visit, &ticket, &Outcome::Error(error)),
        (Shown::Screen(_), None) => Err(Refusal::Consent(ConsentRefusal::Unknown)),
    }
}

async fn look(
    member: &Member,
    ticket: &ConsentTicket,
    application: Option<&Application>,
) -> Result<Shown, Refusal> {
    let input = (ticket.clone(), member.viewer(), application.cloned());
    let shown = change(&member.visit.panel, input, |transaction, _, input| {
        let (ticket, viewer, application) = input;
        let now = transaction.now();
        Box::pin(show(transaction, application.as_ref(), (ticket, *viewer), now))
    });
    Ok(shown.await??)
}

async fn screen(
    member: &Member,
    (ticket, handle): (&ConsentTicket, String),
    application: &Application,
    scopes: ScopeSet,
) -> Result<HttpResponse, Refusal> {
    let t = member.visit.language.texts();
    let owner = owner_name(&member.visit, application.owner).await?;
    let scopes = granted(scopes, t);
    let address = &ticket.request.redirect_uri;
    let template = Page {
        frame: Frame {
            navigation: Vec::new(),
            ..Frame::of_member(member, t.consent.title)
        },
        heading: (t.consent.heading)(&application.name),
        owner,
        documentation_url: application.documentation_url.clone(),
        seller: member.seller().clone(),
        warns: scopes.iter().any(|scope| scope.dangerous),
        scopes,
        handle,
        after: (t.consent.after)(&host(address)),
    };
    let mut response = crate::reply::page(StatusCode::OK, &template)?;
    security::let_forms_lead_to(&mut response, address);
    Ok(response)
}

/// POST: the decision.
pub(crate) async fn decide(member: Member, fields: Fields) -> Result<HttpResponse, Refusal> {
    let ticket = opened(&member.visit, fields.get("request"))?;
    let decision = match fields.get("decision") {
        "approve" => Decision::Approve,
        "deny" => Decision::Deny,
        _ => return Err(Refusal::Malformed),
    };
    let deciding = Deciding {
        panel: Arc::clone(&member.visit.panel),
        ticket: ticket.clone(),
        viewer: member.viewer(),
        decision,
        by: member.acting(),
    };
    let made = deciding.run().await?;
    answered(&member.visit, &ticket, &made.outcome)
}

/// POST: gives the screen up and signs out, so that another account can decide.
pub(crate) async fn another_account(member: Member, fields: Fields) -> Result<HttpResponse, Refusal> {
    let handle = fields.get("request");
    let ticket = opened(&member.visit, handle)?;
    let input = (ticket, member.viewer());
    let released = change(&member.visit.panel, input, |transaction, _, (ticket, viewer)| {
        Box::pin(async move {
            release(transaction, ticket, *viewer).await?;
            Ok::<_, Failure<Infallible>>(())
        })
    });
    released.await.map(drop)?;
    sign_out::end(&member).await?;
    sign_out::left(&member, &Next::consent(handle).sign_in())
}

fn opened(visit: &Visit, handle: &str) -> Result<ConsentTicket, Refusal> {
    Ok(consent_ticket::open(visit.panel.sealer.as_ref(), handle)?)
}

fn answered(visit: &Visit, ticket: &ConsentTicket, outcome: &Outcome) -> Result<HttpResponse, Refusal> {
    see_other(&outcome.redirect(ticket, &visit.panel.settings.public_url))
}

async fn owner_name(visit: &Visit, owner: SellerId) -> Result<String, Refusal> {
    let owner = visit.panel.sellers.seller(owner).await?;
    Ok(owner.map(|owner| owner.name).unwrap_or_default())
}

/// The host that a seller returns to, as it is read.
fn host(address: &str) -> String {
    let url = Url::parse(address).ok();
    let host = url.and_then(|url| url.host_str().map(str::to_owned));
    host.unwrap_or_default()
}
