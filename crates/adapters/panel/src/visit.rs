//! What a page knows of the request that it answers.

use std::net::IpAddr;
use std::sync::Arc;

use oauth::{BrowserSecret, SecretHash, Seller, SignedIn, Viewer};
use usecases::ActingSeller;
use usecases::sent_form::SentForm;
use web::TraceId;
use web::form::Form;

use crate::Panel;
use crate::fields::Fields;
use crate::language::Language;
use crate::refusal::Refusal;

/// A request for a page.
pub(crate) struct Visit {
    pub(crate) panel: Arc<Panel>,
    pub(crate) trace_id: TraceId,
    /// Whom the request comes from, trusted proxies left out.
    pub(crate) client: IpAddr,
    pub(crate) language: Language,
    /// The path as it was sent.
    pub(crate) path: String,
    pub(crate) query: Form,
    /// What stands in the path where the route's template has braces; empty where it has none.
    pub(crate) parameter: String,
    /// Whether only the head of the answer is asked for.
    pub(crate) head: bool,
}

/// A request of somebody who need not be signed in.
pub(crate) struct Visitor {
    pub(crate) visit: Visit,
    /// The browser's secret, made for this request where it had none.
    pub(crate) browser: BrowserSecret,
}

/// A request of somebody who is signed in.
pub(crate) struct Member {
    pub(crate) visit: Visit,
    pub(crate) browser: BrowserSecret,
    pub(crate) signed_in: SignedIn,
}

impl Member {
    pub(crate) const fn seller(&self) -> &Seller {
        &self.signed_in.seller
    }

    pub(crate) const fn session(&self) -> SecretHash {
        self.signed_in.session.hash
    }

    pub(crate) const fn viewer(&self) -> Viewer {
        Viewer {
            session: self.session(),
            seller: self.signed_in.seller.id,
        }
    }

    /// The form that was sent, as one that acts once.
    pub(crate) fn sent(&self, fields: &Fields) -> Result<SentForm, Refusal> {
        Ok(SentForm {
            session: self.session(),
            number: fields.number().ok_or(Refusal::Malformed)?,
            mark: fields.mark(&self.visit.path),
        })
    }

    /// Who acts, for the audit log.
    pub(crate) const fn acting(&self) -> ActingSeller {
        ActingSeller {
            seller: self.signed_in.seller.id,
            address: self.visit.client,
        }
    }
}
