//! Money as JSON (contract: Money).

use kernel::{Currency, MAX_AMOUNT, Money};

use crate::decode::{Shape, integer, object, one_of};
use crate::schema::{self, string};

crate::view! {
    /// `{amount, currency}`
    pub MoneyView of money: Money, named "Money", "An amount of money." {
        "amount": schema::integer(0, MAX_AMOUNT).describe("In the minor unit: grosze.").example(12_900)
            => money.amount(),
        "currency": string().describe("ISO 4217. `PLN` at present.").example(Currency::Pln.code())
            => money.currency().code(),
    }
}

/// An amount to be set. The marketplace trades in one currency (D24).
pub fn money() -> impl Shape<Value = Money> {
    object!(
        amount: required(integer(0..=MAX_AMOUNT).checked(Money::pln).describe("In the minor unit: grosze.")),
        currency: required(one_of(&[Currency::Pln], Currency::code).describe("ISO 4217.").named("Currency"))
        => match currency { Currency::Pln => amount }
    )
    .describe("An amount of money, to be set.")
    .named("NewPrice")
}
