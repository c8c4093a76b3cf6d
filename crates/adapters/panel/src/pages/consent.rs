//! `/panel/consent`: the screen on which a seller grants or denies an application access.

use std::sync::Arc;

use accounts::Seller;
use askama::Template;
use kernel::StoreError;
use oauth::{Application, ConsentRefusal, ConsentTicket, Decision, ScopeSet};
use url::Url;
use usecases::authorize::{open_ticket, seal_ticket};
use usecases::consent::{
    ConsentResponse, Decided, ScreenResponse, SellerDecision, decide as decide_consent, show, was_committed,
};
use usecases::{Failure, LockSet, Transaction, retry};
use web::access_log::LoggedRefusal;
use web::write::{PreparedTransaction, Recoverable, commit_or_resolve};

use super::{ok, see_other, sign_out};
use crate::frame::Frame;
use crate::next::Next;
use crate::page_error::{PageError, PageResult};
use crate::page_request::{PageRequest, SignedInRequest};
use crate::{Panel, browser};

/// How often to retry when the answer to the COMMIT is lost each time.
const MAX_ATTEMPTS: u32 = 3;

#[derive(Template)]
#[template(path = "consent.html")]
struct ConsentPage {
    frame: Frame,
    heading: String,
    owner: String,
    documentation_url: Option<String>,
    seller: Seller,
    scopes: ScopeSet,
    handle: String,
    after: String,
}

/// GET: the first visit binds the screen to the session. A request that cannot be granted is refused at once.
pub(crate) async fn page(request: SignedInRequest) -> PageResult {
    let ticket = open_handle(&request, request.query.get("request").unwrap_or_default())?;
    let applications = &request.panel.applications;
    let application = applications.client(ticket.request.client_id).await?;
    let show_screen = async |is_retry| {
        let input = (ticket.clone(), request.viewer(), application.clone(), is_retry);
        let shown = request.change(input, |tx, _, (ticket, viewer, application, is_retry)| {
            let now = tx.now();
            Box::pin(show(tx, application.as_ref(), ticket, *viewer, *is_retry, now))
        });
        shown.await?.map_err(PageError::Consent)
    };
    let mut attempts = 1;
    let shown = loop {
        match show_screen(attempts > 1).await {
            // A retry gives the same screen, whether or not the first transaction was committed.
            Err(error) if error.is_unknown() && attempts < MAX_ATTEMPTS => attempts += 1,
            shown => break shown?,
        }
    };
    match (shown, application) {
        (ScreenResponse::Screen(shown), Some(application)) => screen(&request, &shown, application).await,
        (ScreenResponse::Answered(error), _) => answered(&request, &ticket, &ConsentResponse::Error(error)),
        (ScreenResponse::Screen(_), None) => Err(PageError::Consent(ConsentRefusal::Unknown)),
    }
}

async fn screen(request: &SignedInRequest, ticket: &ConsentTicket, application: Application) -> PageResult {
    let t = &request.texts().consent;
    let owner = request.panel.accounts.seller(application.owner).await?;
    let address = &ticket.request.redirect_uri;
    let url = Url::parse(address).ok();
    let host = url.as_ref().and_then(Url::host_str).unwrap_or_default();
    let template = ConsentPage {
        frame: Frame {
            navigation: Vec::new(),
            notice: ("", ""),
            ..request.frame(t.title)
        },
        heading: (t.heading)(&application.name),
        owner: owner.map(|owner| owner.name).unwrap_or_default(),
        documentation_url: application.documentation_url,
        seller: request.seller().clone(),
        scopes: ticket.request.scopes,
        handle: seal_ticket(request.panel.sealer.as_ref(), ticket)?,
        after: (t.after)(host),
    };
    let mut response = ok(&template)?;
    browser::allow_form_redirect_to(&mut response, address);
    Ok(response)
}

/// POST: the decision, in a task that runs to its end even if the browser disconnects.
pub(crate) async fn decide(request: SignedInRequest) -> PageResult {
    let ticket = open_handle(&request, request.fields.get("request"))?;
    let decision = match request.fields.get("decision") {
        "approve" => Decision::Approve,
        "deny" => Decision::Deny,
        _ => return Err(PageError::Malformed),
    };
    let work = DecisionTransaction {
        panel: Arc::clone(&request.panel),
        decision: SellerDecision {
            ticket: ticket.clone(),
            viewer: request.viewer(),
            address: request.client,
            decision,
        },
    };
    let running = request.panel.ports.tasks.run(async move {
        let ready = work.prepare().await?;
        commit_or_resolve(work.panel.ports.units.as_ref(), &work, ready).await
    });
    match running.await? {
        Ok(made) => answered(&request, &ticket, &made.response),
        Err(Failure::Refused(refusal)) => Err(PageError::Consent(refusal)),
        Err(Failure::Store(error)) => Err(error.into()),
    }
}

struct DecisionTransaction {
    panel: Arc<Panel>,
    decision: SellerDecision,
}

type Refused = Failure<ConsentRefusal>;

/// If the answer to the COMMIT is lost, the rows decide: the browser gets a code if and only if it was
/// stored.
impl Recoverable for DecisionTransaction {
    type Done = Decided;
    type Error = Refused;

    async fn prepare(&self) -> Result<PreparedTransaction<Decided>, Refused> {
        let attempt = || async {
            let locks = LockSet::of_seller(self.decision.viewer.seller);
            let transaction = self.panel.ports.units.begin(&locks).await?;
            let (tx, randomness) = (transaction.as_ref(), self.panel.ports.randomness.as_ref());
            let code_ttl = self.panel.settings.code_ttl;
            let made = decide_consent(tx, tx, tx, randomness, &self.decision, code_ttl, tx.now()).await?;
            Ok((transaction, made))
        };
        retry(attempt).await
    }

    async fn was_committed(&self, tx: &dyn Transaction, decided: &Decided) -> Result<bool, StoreError> {
        was_committed(tx, &self.decision.ticket, self.decision.viewer, decided).await
    }
}

/// POST: abandons the screen and signs out, so that another account can decide.
pub(crate) async fn another_account(request: SignedInRequest) -> PageResult {
    let handle = request.fields.get("request");
    let input = (open_handle(&request, handle)?, request.viewer());
    let released = request.store(input, |tx, _, (ticket, viewer)| {
        tx.release_consent(ticket.id, *viewer)
    });
    released.await?;
    sign_out::end(&request, false).await?;
    sign_out::signed_out(&request, &Next::consent(handle).sign_in())
}

fn open_handle(request: &PageRequest, handle: &str) -> PageResult<ConsentTicket> {
    open_ticket(request.panel.sealer.as_ref(), handle).map_err(PageError::Consent)
}

/// The redirect to the application. The access log has its id and the error, extensions of the response.
fn answered(request: &PageRequest, ticket: &ConsentTicket, response: &ConsentResponse) -> PageResult {
    let mut answer = see_other(&response.redirect(ticket, &request.panel.ports.service.public_url))?;
    answer.extensions_mut().insert(ticket.request.client_id);
    if let ConsentResponse::Error(denial) = response {
        let (error, reason) = (denial.error().as_str(), Some(denial.as_str()));
        answer.extensions_mut().insert(LoggedRefusal { error, reason });
    }
    Ok(answer)
}
