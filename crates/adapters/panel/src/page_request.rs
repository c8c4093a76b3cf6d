//! The request that a page answers, and how a page changes anything: each change is one transaction in a task
//! that runs to its end even if the browser disconnects.

use std::convert::Infallible;
use std::net::IpAddr;
use std::ops::Deref;
use std::sync::Arc;

use accounts::{Seller, SignedIn};
use futures_util::future::BoxFuture;
use kernel::{SellerId, StoreError};
use oauth::{BrowserSecret, SecretHash, Viewer};
use usecases::shown_once::{SentForm, ShownSecret};
use usecases::{ActingSeller, Failure, LockSet, Transaction, transact};
use web::TraceId;
use web::form::Form;

use crate::Panel;
use crate::fields::Fields;
use crate::page_error::{PageError, PageResult};
use crate::texts::{Language, Texts};

/// A request for a page, or a submitted form.
pub(crate) struct PageRequest {
    pub(crate) panel: Arc<Panel>,
    pub(crate) trace_id: TraceId,
    /// The client's address, behind trusted proxies.
    pub(crate) client: IpAddr,
    pub(crate) language: Language,
    /// The path as sent.
    pub(crate) path: String,
    pub(crate) query: Form,
    /// The variable part of the path; empty if the route's template has none.
    pub(crate) parameter: String,
    /// Whether the request is a HEAD request.
    pub(crate) head: bool,
    /// The browser's secret; new if the browser sent none.
    pub(crate) browser: BrowserSecret,
    /// The form, after the check of its CSRF token; empty with GET.
    pub(crate) fields: Fields,
    /// Whose request it is, once that is known by session, password, link or entered address: its changes are in this
    /// seller's share of the connections, others in that of strangers.
    pub(crate) seller: Option<SellerId>,
}

/// A request of a signed-in seller.
pub(crate) struct SignedInRequest {
    pub(crate) request: PageRequest,
    pub(crate) signed_in: SignedIn,
}

/// The future of a use case.
type UseCaseFuture<'t, T, E> = BoxFuture<'t, Result<T, E>>;
/// The future of a use case with its result to be shown once, if any.
type FormFuture<'t, R> = UseCaseFuture<'t, Option<ShownSecret>, Failure<R>>;

impl PageRequest {
    pub(crate) const fn texts(&self) -> &'static Texts {
        self.language.texts()
    }

    /// The actor for the audit log, while nobody is signed in yet.
    pub(crate) const fn acting_for(&self, seller: SellerId) -> ActingSeller {
        let address = self.client;
        ActingSeller { seller, address }
    }

    /// The id in the path.
    pub(crate) fn id<T: std::str::FromStr>(&self) -> PageResult<T> {
        self.parameter.parse().map_err(|_| PageError::NotFound)
    }

    /// The position in a list at which the page begins, if any.
    pub(crate) fn position<T: std::str::FromStr>(&self, name: &str) -> PageResult<Option<T>> {
        let position = self.query.get(name).filter(|position| !position.is_empty());
        let position = position.map(str::parse).transpose();
        position.map_err(|_| PageError::NotFound)
    }

    /// Runs a use case in a transaction. The outer error is a failure of the store, the inner one the refusal
    /// of the use case.
    ///
    /// The work starts at once, even if the returned future is dropped.
    pub(crate) fn change<I, T, R, F>(
        &self,
        input: I,
        run: F,
    ) -> impl Future<Output = PageResult<Result<T, R>>> + use<I, T, R, F>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
        R: Send + 'static,
        F: for<'t> Fn(&'t dyn Transaction, &'t Panel, &'t I) -> UseCaseFuture<'t, T, Failure<R>>
            + Send
            + Sync
            + 'static,
    {
        let locks = self.seller.map_or_else(LockSet::of_strangers, LockSet::of_seller);
        let input = (Arc::clone(&self.panel), input);
        let running = async move {
            let units = input.0.ports.units.as_ref();
            transact(units, &locks, &input, |tx, (panel, input)| run(tx, panel, input)).await
        };
        let running = self.panel.ports.tasks.run(running);
        async {
            match running.await? {
                Ok(done) => Ok(Ok(done)),
                Err(Failure::Refused(refusal)) => Ok(Err(refusal)),
                Err(Failure::Store(error)) => Err(error.into()),
            }
        }
    }

    /// The same for a use case without refusals.
    pub(crate) async fn store<I, T, F>(&self, input: I, run: F) -> PageResult<T>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
        F: for<'t> Fn(&'t dyn Transaction, &'t Panel, &'t I) -> UseCaseFuture<'t, T, StoreError>
            + Send
            + Sync
            + 'static,
    {
        let done = self.change(input, move |transaction, panel, input| {
            let running = run(transaction, panel, input);
            Box::pin(async { Ok::<_, Failure<Infallible>>(running.await?) })
        });
        done.await.map(|Ok(done)| done)
    }
}

impl SignedInRequest {
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

    /// The submitted form, which takes effect only once.
    pub(crate) fn form(&self) -> PageResult<SentForm> {
        let number = self.fields.get("form").parse().ok();
        Ok(SentForm {
            session: self.session(),
            number: number.ok_or(PageError::Malformed)?,
            mark: self.fields.mark(&self.path),
        })
    }

    /// Runs a use case as [`PageRequest::change`] does, once for the form. `back` is the page that has the
    /// form with a new number.
    pub(crate) async fn change_once<I, R, F>(
        &self,
        form: SentForm,
        back: &str,
        input: I,
        run: F,
    ) -> PageResult<Result<(), R>>
    where
        I: Send + Sync + 'static,
        R: Send + 'static,
        F: for<'t> Fn(&'t dyn Transaction, &'t Panel, &'t I) -> FormFuture<'t, R> + Send + Sync + 'static,
    {
        let changed = self.change((form, input), move |tx, panel, (form, input)| {
            let action = run(tx, panel, input);
            Box::pin(form.once(tx, panel.sealer.as_ref(), action))
        });
        match changed.await? {
            Ok(()) => Ok(Ok(())),
            Err(Some(refusal)) => Ok(Err(refusal)),
            Err(None) => Err(PageError::FormUsed(back.to_owned())),
        }
    }

    /// The actor for the audit log.
    pub(crate) const fn acting(&self) -> ActingSeller {
        self.request.acting_for(self.signed_in.seller.id)
    }
}

impl Deref for SignedInRequest {
    type Target = PageRequest;

    fn deref(&self) -> &PageRequest {
        &self.request
    }
}
