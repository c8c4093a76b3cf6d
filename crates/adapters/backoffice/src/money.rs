//! Money as it is read and written (contract: Money).

use kernel::{Currency, MAX_AMOUNT, Money};
use serde::Serialize;
use web::decode::{Shape, integer, object, one_of, required};

/// `{amount, currency}`. The marketplace trades in one currency (D24).
pub(crate) fn money() -> impl Shape<Value = Money> {
    object((
        required("amount", integer(0..=MAX_AMOUNT).checked(Money::pln)),
        required("currency", one_of(&[Currency::Pln], Currency::code)),
    ))
    .map(|(money, Currency::Pln)| money)
}

/// `{amount, currency}`
#[derive(Serialize)]
pub(crate) struct MoneyView {
    amount: i64,
    currency: &'static str,
}

impl From<Money> for MoneyView {
    fn from(money: Money) -> Self {
        Self {
            amount: money.amount(),
            currency: money.currency().code(),
        }
    }
}
