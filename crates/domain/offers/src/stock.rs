//! Stock that orders take and cancellations give back.

use chrono::{DateTime, Utc};
use kernel::Change;

use crate::{Offer, OfferEvent, Stock};

/// An offer has fewer pieces than an order asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("only {available} in stock")]
pub struct Short {
    /// Pieces on hand.
    pub available: i32,
}

impl Offer {
    /// An order takes `quantity` pieces, at least 1. An offer without an inventory level is not counted.
    pub fn take_stock(self, quantity: i32, now: DateTime<Utc>) -> Result<Change<Self, OfferEvent>, Short> {
        let Some(stock) = self.stock else {
            return Ok(Change::of_existing(self, Vec::new()));
        };
        let left = stock.less(quantity).ok_or(Short {
            available: stock.get(),
        })?;
        Ok(self.with_stock(left, now))
    }

    /// A cancelled order gives `quantity` pieces back. An offer that has no inventory level any more is not counted.
    #[must_use]
    pub fn return_stock(self, quantity: i32, now: DateTime<Utc>) -> Change<Self, OfferEvent> {
        match self.stock {
            None => Change::of_existing(self, Vec::new()),
            Some(stock) => self.with_stock(stock.plus(quantity), now),
        }
    }

    fn with_stock(self, stock: Stock, now: DateTime<Utc>) -> Change<Self, OfferEvent> {
        let after = Self {
            stock: Some(stock),
            ..self.clone()
        };
        self.changed(after, now)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stock(pieces: i32) -> Stock {
        Stock::new(i64::from(pieces)).unwrap()
    }

    proptest! {
        #[test]
        fn what_is_taken_and_given_back_is_the_same_again(pieces in 0..=i32::MAX, quantity in 1..=i32::MAX) {
            match stock(pieces).less(quantity) {
                None => prop_assert!(quantity > pieces),
                Some(left) => {
                    prop_assert_eq!(left.get(), pieces - quantity);
                    prop_assert_eq!(left.plus(quantity).get(), pieces);
                }
            }
        }

        #[test]
        fn a_stock_never_overflows(pieces in 0..=i32::MAX, quantity in 1..=i32::MAX) {
            prop_assert!(stock(pieces).plus(quantity).get() >= pieces);
        }
    }
}
