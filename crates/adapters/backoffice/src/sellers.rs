//! Sellers: register, list, read, close, invite to the panel.

use accounts::{NewPassword, NewSeller, PasswordHash, Seller, email_address, seller_name};
use actix_web::http::StatusCode;
use kernel::{Invalid, SellerId};
use serde::Serialize;
use serde_json::json;
use usecases::Transaction;
use usecases::account_links::{NotInvited, create_sign_in_link, invite, link_url};
use usecases::sellers::{NotOpen, close_seller, register_seller};
use web::decode::{Shape, object, text};
use web::openapi::Parameter;
use web::operation::{Call, Incoming, Read, Write};
use web::reply::Reply;
use web::timestamps::Timestamp;
use web::view::View;
use web::{Error, MapRefusal, Problem, Violations};

use crate::policy::{conflict, operator};
use crate::{Access, BackOffice};

web::view! {
    SellerView<'a> of seller: &'a Seller {
        "id" => seller.id.uuid(),
        "seller_no" => seller.seller_no,
        "name" => seller.name,
        "email" => seller.email,
        "created_at" => Timestamp::new(seller.created_at),
        "closed_at" => seller.closed_at.map(Timestamp::new),
    }
}

/// The message for an `after` that is no cursor.
pub(crate) const NOT_A_CURSOR: &str = "Must be the `next` of a page.";

/// Replies with the first `limit` rows; one more shows that there is another page.
pub(crate) async fn page<'a, R, T: Serialize>(
    rows: &'a [R],
    limit: u16,
    view: impl Fn(&'a R) -> T,
    position: impl Fn(&R) -> String,
) -> Result<Reply, Error> {
    let shown = rows.get(..limit.into()).unwrap_or(rows);
    let next = shown.last().filter(|_| shown.len() < rows.len()).map(position);
    Reply::page(shown.iter().map(view).collect(), next).await
}

/// Registers an account, with or without a password.
pub(crate) struct CreateSeller {
    name: String,
    email: String,
    password: Option<NewPassword>,
    /// The hash of the password, once it is computed.
    hash: Option<PasswordHash>,
}

impl Write<BackOffice> for CreateSeller {
    const SCOPE: Access = Access::Write;

    fn decode(incoming: &Incoming<'_>, _: &Call<BackOffice>) -> Result<Option<Self>, Violations> {
        incoming.json(&account()).map(Some)
    }

    async fn prepare(&mut self, call: &mut Call<BackOffice>) -> Result<(), Error> {
        if let Some(password) = &self.password {
            let hashing = call.state.passwords.hash(password.reveal());
            self.hash = Some(call.deadline.pause(hashing).await?);
        }
        Ok(())
    }

    async fn apply(&self, call: &Call<BackOffice>, tx: &dyn Transaction) -> Result<Reply, Error> {
        let randomness = call.state.ports.randomness.as_ref();
        let new = NewSeller {
            id: randomness.uuid().into(),
            name: self.name.clone(),
            email: self.email.clone(),
            password: self.hash.clone(),
            created_at: tx.now(),
        };
        let (public_url, interval) = (
            &call.state.ports.service.public_url,
            call.state.settings.link_interval,
        );
        let registered = register_seller(tx, tx, randomness, operator(call)?, new, public_url, interval);
        let registered = registered.await;
        let seller = registered.map_refusal(|refusal| conflict(&refusal).at("email").into())?;
        Reply::created(&json!({ "id": seller.id.to_string(), "seller_no": seller.seller_no }))
    }
}

/// An e-mail address that erasure does not assign: if it were taken, that erasure's whole batch would fail.
fn unreserved_address(address: String) -> Result<String, Invalid> {
    let address = email_address(address)?;
    if address.to_ascii_lowercase().ends_with("@erased.invalid") {
        let rule = "must not end in `@erased.invalid`: it is reserved for erased accounts";
        return Err(Invalid::new(rule));
    }
    Ok(address)
}

fn account() -> impl Shape<Value = CreateSeller> {
    object!(
        name: required(text().checked(seller_name)),
        email: required(text().checked(unreserved_address)),
        password: nullable(text().checked(|password: String| {
            NewPassword::new(password, email.as_deref().unwrap_or_default())
        }))
        => CreateSeller { name, email, password, hash: None }
    )
}

/// Lists accounts in order of their numbers.
pub(crate) struct ListSellers {
    /// The seller number after which the page begins.
    after: i32,
    limit: u16,
}

impl Read<BackOffice> for ListSellers {
    const SCOPE: Access = Access::Read;
    const QUERY: &'static [Parameter] = &[Parameter::undocumented("limit"), Parameter::undocumented("after")];

    fn decode(incoming: &Incoming<'_>, _: &Call<BackOffice>) -> Result<Option<Self>, Violations> {
        incoming.query(|query| {
            let after = query.parsed("after", |text| position(text).ok_or(NOT_A_CURSOR));
            Some(Self {
                after: after.unwrap_or(0),
                limit: query.limit(),
            })
        })
    }

    async fn execute(self, call: Call<BackOffice>) -> Result<Reply, Error> {
        let Self { after, limit } = self;
        let sellers = call.state.sellers.sellers(after, limit.saturating_add(1)).await?;
        let number = |last: &Seller| last.seller_no.to_string();
        page(&sellers, limit, SellerView::whole, number).await
    }
}

/// A cursor of [`ListSellers`]: the number of the last seller on a page. Operators may see every seller, so
/// it is not sealed.
fn position(text: &str) -> Option<i32> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}

pub(crate) struct ReadSeller(SellerId);

impl Read<BackOffice> for ReadSeller {
    const SCOPE: Access = Access::Read;

    fn decode(incoming: &Incoming<'_>, _: &Call<BackOffice>) -> Result<Option<Self>, Violations> {
        Ok(incoming.id(0).map(Self))
    }

    async fn execute(self, call: Call<BackOffice>) -> Result<Reply, Error> {
        Reply::ok(&SellerView::whole(&existing(self.0, &call).await?))
    }
}

/// The account, open or closed; 404 if there is none.
pub(crate) async fn existing(id: SellerId, call: &Call<BackOffice>) -> Result<Seller, Error> {
    let seller = call.state.sellers.seller(id).await?;
    Ok(seller.ok_or_else(Problem::not_found)?)
}

/// Closes an account permanently.
pub(crate) struct CloseSeller(SellerId);

impl Write<BackOffice> for CloseSeller {
    const SCOPE: Access = Access::Write;

    fn decode(incoming: &Incoming<'_>, _: &Call<BackOffice>) -> Result<Option<Self>, Violations> {
        incoming.no_body()?;
        Ok(incoming.id(0).map(Self))
    }

    async fn apply(&self, call: &Call<BackOffice>, tx: &dyn Transaction) -> Result<Reply, Error> {
        let closed = close_seller(tx, operator(call)?, self.0, tx.now()).await;
        let seller = closed.map_refusal(link_problem)?;
        Reply::ok(&SellerView::whole(&seller))
    }
}

/// Makes a link with which the marketplace signs a seller in.
pub(crate) struct MakeSignInLink(SellerId);

impl Write<BackOffice> for MakeSignInLink {
    const SCOPE: Access = Access::Write;

    fn decode(incoming: &Incoming<'_>, _: &Call<BackOffice>) -> Result<Option<Self>, Violations> {
        incoming.no_body()?;
        Ok(incoming.id(0).map(Self))
    }

    async fn apply(&self, call: &Call<BackOffice>, tx: &dyn Transaction) -> Result<Reply, Error> {
        let (randomness, by) = (call.state.ports.randomness.as_ref(), operator(call)?);
        let made = create_sign_in_link(tx, randomness, by, self.0, tx.now()).await;
        let (secret, link) = made.map_refusal(link_problem)?;
        let url = link_url(&call.state.ports.service.public_url, link.kind, &secret);
        Reply::created(&json!({ "url": url, "expires_at": Timestamp::new(link.expires_at) }))
    }
}

/// Sends a seller without a password a link to set one.
pub(crate) struct InviteSeller(SellerId);

impl Write<BackOffice> for InviteSeller {
    const SCOPE: Access = Access::Write;

    fn decode(incoming: &Incoming<'_>, _: &Call<BackOffice>) -> Result<Option<Self>, Violations> {
        incoming.no_body()?;
        Ok(incoming.id(0).map(Self))
    }

    async fn apply(&self, call: &Call<BackOffice>, tx: &dyn Transaction) -> Result<Reply, Error> {
        let (ports, by, interval) = (
            &call.state.ports,
            operator(call)?,
            call.state.settings.link_interval,
        );
        let (randomness, public_url) = (ports.randomness.as_ref(), &ports.service.public_url);
        let invited = invite(tx, randomness, by, self.0, public_url, interval, tx.now()).await;
        let link = invited.map_refusal(|refusal| match refusal {
            NotInvited::Account(refusal) => link_problem(refusal),
            NotInvited::HasPassword | NotInvited::TooManyMails => conflict(&refusal).into(),
        })?;
        let body = json!({ "expires_at": Timestamp::new(link.expires_at) });
        Reply::json(StatusCode::ACCEPTED, &body)
    }
}

fn link_problem(refusal: NotOpen) -> Problem {
    match refusal {
        NotOpen::NoSuchSeller => Problem::not_found(),
        NotOpen::SellerClosed => conflict(&refusal).into(),
    }
}
