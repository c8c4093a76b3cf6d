//! Money as JSON (contract: Money).

use kernel::{Currency, MAX_AMOUNT, Money};
use serde::Serialize;

use crate::decode::{self, Shape, one_of, required};
use crate::schema::{self, Node, string};

/// `{amount, currency}`
#[derive(Serialize)]
pub struct MoneyView {
    amount: i64,
    currency: &'static str,
}

impl MoneyView {
    /// The schema in the OpenAPI document.
    pub fn schema() -> Node {
        let amount = schema::integer(0, MAX_AMOUNT).describe("In the minor unit: grosze.");
        let currency = string().describe("ISO 4217. `PLN` at present.");
        schema::object(&[
            ("amount", amount.example(12_900)),
            ("currency", currency.example(Currency::Pln.code())),
        ])
        .describe("An amount of money.")
        .named("Money")
    }
}

impl From<Money> for MoneyView {
    fn from(money: Money) -> Self {
        Self {
            amount: money.amount(),
            currency: money.currency().code(),
        }
    }
}

/// An amount to be set. The marketplace trades in one currency (D24).
pub fn money() -> impl Shape<Value = Money> {
    let amount = decode::integer(0..=MAX_AMOUNT).checked(Money::pln);
    let currency = one_of(&[Currency::Pln], Currency::code);
    decode::object((
        required(
            "amount",
            amount.map_schema(|schema| schema.describe("In the minor unit: grosze.")),
        ),
        required(
            "currency",
            currency.map_schema(|schema| schema.describe("ISO 4217.").named("Currency")),
        ),
    ))
    .map(|(money, Currency::Pln)| money)
    .map_schema(|schema| {
        schema
            .describe("An amount of money, to be set.")
            .named("NewPrice")
    })
}
