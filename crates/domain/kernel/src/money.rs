//! Money in minor units (grosze for PLN).

use crate::Invalid;

/// The largest amount: 2^53 − 1, the last integer that every JSON client reads exactly.
pub const MAX_AMOUNT: i64 = 9_007_199_254_740_991;

/// The only currency, Polish złoty, by its ISO 4217 code.
pub const CURRENCY: &str = "PLN";

/// An amount of money in [`CURRENCY`], never negative (contract: Money).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Money(i64);

impl Money {
    /// `amount` grosze, 0 to [`MAX_AMOUNT`].
    pub fn pln(amount: i64) -> Result<Self, Invalid> {
        if !(0..=MAX_AMOUNT).contains(&amount) {
            let reason = format!("must be an amount from 0 to {MAX_AMOUNT} in minor units");
            return Err(Invalid::new(reason));
        }
        Ok(Self(amount))
    }

    /// The amount in minor units, 0 to [`MAX_AMOUNT`].
    pub const fn amount(self) -> i64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_bounded() {
        assert_eq!(Money::pln(0).unwrap().amount(), 0);
        assert_eq!(Money::pln(MAX_AMOUNT).unwrap().amount(), MAX_AMOUNT);
        assert!(Money::pln(-1).is_err());
        assert!(Money::pln(MAX_AMOUNT + 1).is_err());
    }
}
