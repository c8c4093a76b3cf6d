//! Money in minor units (grosze for PLN).

/// The largest amount: 2^53 − 1, the last integer that every JSON client reads exactly.
pub const MAX_AMOUNT: i64 = 9_007_199_254_740_991;

/// ISO 4217 currency. The marketplace uses only one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Currency {
    /// Polish złoty.
    #[default]
    Pln,
}

impl Currency {
    /// The ISO 4217 code.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Pln => "PLN",
        }
    }
}

/// An amount of money, never negative (contract: Money).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Money {
    amount: i64,
    currency: Currency,
}

/// An amount outside 0 to [`MAX_AMOUNT`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be an amount from 0 to {MAX_AMOUNT} in minor units")]
pub struct MoneyError;

impl Money {
    /// `amount` grosze, 0 to [`MAX_AMOUNT`].
    pub const fn pln(amount: i64) -> Result<Self, MoneyError> {
        if amount < 0 || amount > MAX_AMOUNT {
            return Err(MoneyError);
        }
        Ok(Self {
            amount,
            currency: Currency::Pln,
        })
    }

    /// The amount in minor units, 0 to [`MAX_AMOUNT`].
    pub const fn amount(self) -> i64 {
        self.amount
    }

    pub const fn currency(self) -> Currency {
        self.currency
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_bounded_and_currencies_have_iso_4217_codes() {
        assert_eq!(Money::pln(0).unwrap().amount(), 0);
        assert_eq!(Money::pln(MAX_AMOUNT).unwrap().amount(), MAX_AMOUNT);
        assert_eq!(Money::pln(-1), Err(MoneyError));
        assert_eq!(Money::pln(MAX_AMOUNT + 1), Err(MoneyError));
        assert_eq!(Money::pln(1).unwrap().currency().code(), "PLN");
    }
}
