//! An amount of money as sellers see it (contract: Money).

use kernel::Money;
use serde::Serialize;

/// Contract: Money.
#[derive(Serialize)]
pub(super) struct MoneyView {
    amount: i64,
    currency: &'static str,
}

impl MoneyView {
    pub(super) const fn of(money: Money) -> Self {
        Self {
            amount: money.amount(),
            currency: money.currency().code(),
        }
    }
}
