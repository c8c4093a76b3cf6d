//! A buyer's order, handed over by the marketplace.

use std::str::FromStr;
use std::sync::Arc;

use async_trait::async_trait;
use kernel::{Invalid, Randomness};
use oauth::Email;
use orders::{Buyer, OrderNumber, ShippingAddress};
use serde_json::json;
use usecases::place_order::{self, Line, Placed, Request, place_order};
use usecases::{Failure, Transaction, Work};
use web::decode::{Shape, Text, boolean, integer, list, nullable, object, optional, required, text};
use web::{Code, Entry, Problem, sentence};

use crate::money::money;
use crate::operation::{Context, Operation};
use crate::refusal::{Refusal, Refused};
use crate::reply::Reply;
use crate::request::Parts;
use crate::ruled::{self, rule};

/// The most lines of one order.
const MOST_ITEMS: usize = 1_000;
/// The longest text in an order, in characters.
const LONGEST_TEXT: usize = 500;

/// `POST /orders`
pub(crate) struct PlaceOrder;

impl Operation for PlaceOrder {
    type Input = Request;

    fn decode(parts: &Parts<'_>) -> Result<Request, Refusal> {
        Ok(parts.json(&body())?)
    }

    async fn execute(request: Request, context: Context) -> Result<Reply, Refusal> {
        let work = Place {
            request,
            randomness: Arc::clone(&context.office.randomness),
        };
        let answer = |placed: Placed| {
            Reply::created(&json!({
                "order_id": placed.id.to_string(),
                "order_number": placed.number.as_str(),
            }))
        };
        context.write(work, answer).await
    }
}

fn body() -> impl Shape<Value = Request> {
    object((
        nullable("order_number", text().checked(rule(OrderNumber::new))),
        optional("is_test", boolean()),
        nullable("payment_method", words()),
        nullable("delivery_method", words()),
        nullable("buyer", buyer()),
        nullable("shipping_address", address()),
        required("items", list(line()).at_least(1).at_most(MOST_ITEMS)),
    ))
    .map(
        |(number, is_test, payment_method, delivery_method, buyer, shipping_address, items)| Request {
            number,
            is_test: is_test.unwrap_or_default(),
            payment_method,
            delivery_method,
            buyer,
            shipping_address,
            items,
        },
    )
}

fn buyer() -> impl Shape<Value = Buyer> {
    object((
        nullable("name", words()),
        nullable("email", text().checked(rule(mail_address))),
        nullable("phone", words()),
    ))
    .map(|(name, email, phone)| Buyer {
        name,
        email: email.map(|email| email.as_str().to_owned()),
        phone,
    })
}

/// Shops that hold an empty text for a missing address are told what to send instead.
fn mail_address(address: String) -> Result<Email, Invalid> {
    if address.is_empty() {
        return Err(Invalid::new(
            "must be an e-mail address; where there is none, send null",
        ));
    }
    Email::new(address)
}

/// An address may be missing, but one without a country leads nowhere (D125).
fn address() -> impl Shape<Value = ShippingAddress> {
    object((
        nullable("line1", words()),
        nullable("line2", words()),
        nullable("postal_code", words()),
        nullable("city", words()),
        required("country", text().length(1..=LONGEST_TEXT)),
    ))
    .map(|(line1, line2, postal_code, city, country)| ShippingAddress {
        line1,
        line2,
        postal_code,
        city,
        country,
    })
}

fn line() -> impl Shape<Value = Line> {
    object((
        required("seller_id", id()),
        required("offer_id", id()),
        required("quantity", integer(1..=i32::MAX)),
        nullable("unit_price", money()),
        nullable("title", words()),
        nullable("sku", words()),
    ))
    .map(|(seller, offer, quantity, unit_price, title, sku)| Line {
        seller,
        offer,
        quantity,
        unit_price,
        title,
        sku,
    })
}

fn words() -> Text {
    text().length(0..=LONGEST_TEXT)
}

fn id<T: FromStr<Err = Invalid>>() -> impl Shape<Value = T> {
    text().checked(rule(|id: String| id.parse()))
}

struct Place {
    request: Request,
    randomness: Arc<dyn Randomness>,
}

#[async_trait]
impl Work for Place {
    type Done = Placed;
    type Error = Failure<place_order::Refusal>;

    async fn run(&self, tx: &dyn Transaction) -> Result<Placed, Self::Error> {
        place_order(tx, tx, self.randomness.as_ref(), &self.request, tx.now()).await
    }
}

impl Refused for place_order::Refusal {
    fn problem(self) -> Problem {
        match self {
            Self::Invalid(broken) => Problem::validation(ruled::entries(&broken)),
            Self::NumberTaken => Entry::new(Code::Conflict, sentence::of(&self))
                .at("order_number")
                .into(),
            Self::Short(lines) => Problem::of(lines.into_iter().map(|(place, available)| {
                let message = format!("Only {available} in stock.");
                Entry::new(Code::InsufficientStock, message).at(format!("items[{place}].quantity"))
            })),
        }
    }
}
