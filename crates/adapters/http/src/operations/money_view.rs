//! An amount of money as sellers see it (contract: Money).

use kernel::{Currency, MAX_AMOUNT, Money};
use web::schema::{integer, string};

use super::view::part;

part! {
    /// Contract: Money.
    MoneyView, named "Money", "An amount of money." {
        amount: i64 = integer(0, MAX_AMOUNT).said("In the minor unit: grosze.").such_as(12_900),
        currency: &'static str = string().one_of([Currency::Pln.code()]).said("ISO 4217.").named("Currency"),
    }
}

impl MoneyView {
    pub(super) const fn of(money: Money) -> Self {
        Self {
            amount: money.amount(),
            currency: money.currency().code(),
        }
    }
}
