//! Sellers: registered, listed, read, closed.

use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use kernel::{SellerId, Violations};
use oauth::{Email, NewPassword, Seller, SellerName};
use serde::Serialize;
use serde_json::json;
use usecases::close_seller::{self, close_seller};
use usecases::register_seller::{self, Request, Stores, register_seller};
use usecases::{ActingOperator, Failure, Transaction, Work};
use web::decode::{nullable, required, text};
use web::{Code, Entry, Problem, sentence, timestamps};

use crate::operation::{Context, Operation};
use crate::refusal::{Refusal, Refused};
use crate::reply::Reply;
use crate::request::Parts;
use crate::ruled::OrDefault;
use crate::state::BackOffice;

/// `{id, seller_no, name, email, created_at, closed_at}`
#[derive(Serialize)]
struct SellerView<'a> {
    id: String,
    seller_no: i32,
    name: &'a str,
    email: &'a str,
    #[serde(serialize_with = "timestamps::serialize")]
    created_at: DateTime<Utc>,
    #[serde(serialize_with = "timestamps::serialize_option")]
    closed_at: Option<DateTime<Utc>>,
}

impl<'a> From<&'a Seller> for SellerView<'a> {
    fn from(seller: &'a Seller) -> Self {
        Self {
            id: seller.id.to_string(),
            seller_no: seller.seller_no,
            name: &seller.name,
            email: &seller.email,
            created_at: seller.created_at,
            closed_at: seller.closed_at,
        }
    }
}

/// `{items, next}`
#[derive(Serialize)]
struct PageView<'a> {
    items: Vec<SellerView<'a>>,
    next: Option<String>,
}

/// `POST /sellers`
pub(crate) struct CreateSeller;

/// The body of [`CreateSeller`].
pub(crate) struct NewSeller {
    name: SellerName,
    email: Email,
    password: Option<NewPassword>,
}

impl Operation for CreateSeller {
    type Input = NewSeller;

    fn decode(parts: &Parts<'_>) -> Result<NewSeller, Refusal> {
        let fields = (
            OrDefault(required("name", text())),
            OrDefault(required("email", text())),
            OrDefault(nullable("password", text())),
        );
        Ok(parts.ruled(fields, |(name, email, password)| checked(name, email, password))?)
    }

    async fn execute(input: NewSeller, context: Context) -> Result<Reply, Refusal> {
        let password = match input.password {
            Some(password) => Some(context.office.passwords.hash(password.reveal()).await?),
            None => None,
        };
        let work = RegisterSeller {
            by: context.operator()?,
            request: Request {
                name: input.name,
                email: input.email,
                password,
            },
            office: Arc::clone(&context.office),
        };
        let answer = |seller: Seller| {
            Reply::created(&json!({ "id": seller.id.to_string(), "seller_no": seller.seller_no }))
        };
        context.write(work, answer).await
    }
}

/// Keeps the domain's rules, all judged together.
fn checked(name: String, email: String, password: Option<String>) -> Result<NewSeller, Violations> {
    let mut broken = Violations::new();
    let password = password
        .map(|password| NewPassword::new(password, &email))
        .transpose();
    let name = broken.take("name", SellerName::new(name));
    let email = broken.take("email", Email::new(email));
    let password = broken.take("password", password);
    match (name, email, password) {
        (Some(name), Some(email), Some(password)) => Ok(NewSeller {
            name,
            email,
            password,
        }),
        _ => Err(broken),
    }
}

struct RegisterSeller {
    by: ActingOperator,
    request: Request,
    office: Arc<BackOffice>,
}

#[async_trait]
impl Work for RegisterSeller {
    type Done = Seller;
    type Error = Failure<register_seller::Refusal>;

    async fn run(&self, tx: &dyn Transaction) -> Result<Seller, Self::Error> {
        let stores = Stores {
            sellers: tx,
            applications: tx,
            panel: tx,
        };
        let (office, request) = (&self.office, (self.by, &self.request));
        let public_url = &office.settings.public_url;
        register_seller(stores, &*office.randomness, request, public_url, tx.now()).await
    }
}

impl Refused for register_seller::Refusal {
    fn problem(self) -> Problem {
        let Self::EmailTaken = self;
        Entry::new(Code::Conflict, sentence::of(&self)).at("email").into()
    }
}

/// `GET /sellers`
pub(crate) struct ListSellers;

impl Operation for ListSellers {
    /// The number of the seller that the page begins after, and the most items on it.
    type Input = (i32, u16);

    fn decode(parts: &Parts<'_>) -> Result<(i32, u16), Refusal> {
        let page = parts.parameters(&["limit", "after"], |query| {
            let after = query.parsed("after", |text| {
                position(text).ok_or("Must be the `next` of a page.")
            });
            (after.unwrap_or(0), query.limit())
        })?;
        Ok(page)
    }

    async fn execute((after, limit): (i32, u16), context: Context) -> Result<Reply, Refusal> {
        let mut sellers = context
            .office
            .sellers
            .sellers(after, limit.saturating_add(1))
            .await?;
        let more = sellers.len() > usize::from(limit);
        sellers.truncate(limit.into());
        let next = sellers
            .last()
            .filter(|_| more)
            .map(|last| last.seller_no.to_string());
        let items = sellers.iter().map(SellerView::from).collect();
        Ok(Reply::ok(&PageView { items, next })?)
    }
}

/// A cursor of [`ListSellers`]: the number of a page's last seller. Operators see every seller, so it needs no seal.
fn position(text: &str) -> Option<i32> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}

/// `GET /sellers/{seller}`
pub(crate) struct ReadSeller;

impl Operation for ReadSeller {
    type Input = SellerId;

    fn decode(parts: &Parts<'_>) -> Result<SellerId, Refusal> {
        parts.no_query()?;
        Ok(parts.id(0)?)
    }

    async fn execute(id: SellerId, context: Context) -> Result<Reply, Refusal> {
        let seller = existing(id, &context).await?;
        Ok(Reply::ok(&SellerView::from(&seller))?)
    }
}

/// The account, closed or not; 404 where there is none.
pub(crate) async fn existing(id: SellerId, context: &Context) -> Result<Seller, Refusal> {
    let seller = context.office.sellers.seller(id).await?;
    Ok(seller.ok_or_else(Problem::not_found)?)
}

/// `POST /sellers/{seller}/closure`
pub(crate) struct CloseSeller;

impl Operation for CloseSeller {
    type Input = SellerId;

    fn decode(parts: &Parts<'_>) -> Result<SellerId, Refusal> {
        parts.nothing()?;
        Ok(parts.id(0)?)
    }

    async fn execute(id: SellerId, context: Context) -> Result<Reply, Refusal> {
        let answer = |seller| Reply::ok(&SellerView::from(&seller));
        let work = Close(context.operator()?, id);
        context.write(work, answer).await
    }
}

struct Close(ActingOperator, SellerId);

#[async_trait]
impl Work for Close {
    type Done = Seller;
    type Error = Failure<close_seller::Refusal>;

    async fn run(&self, tx: &dyn Transaction) -> Result<Seller, Self::Error> {
        close_seller((tx, tx), (self.0, self.1), tx.now()).await
    }
}

impl Refused for close_seller::Refusal {
    fn problem(self) -> Problem {
        let Self::NoSuchSeller = self;
        Problem::not_found()
    }
}
