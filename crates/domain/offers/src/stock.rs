//! Stock taken by orders and returned by cancellations, and adjusted by sellers.

use chrono::{DateTime, Utc};
use kernel::{Change, Invalid};

use crate::{Offer, OfferEvent, Stock};

/// Pieces that a seller adds, or takes away if negative: up to a million, not 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StockAdjustment(i32);

impl StockAdjustment {
    pub const MOST: i64 = 1_000_000;

    pub fn new(pieces: i64) -> Result<Self, Invalid> {
        i32::try_from(pieces)
            .ok()
            .filter(|_| pieces != 0 && pieces.abs() <= Self::MOST)
            .map(Self)
            .ok_or_else(|| Invalid::new("must be an integer from -1000000 to 1000000, not 0"))
    }
}

impl Stock {
    /// The stock with this adjustment; None if it would be out of range.
    pub(crate) fn adjusted(self, by: StockAdjustment) -> Option<Self> {
        Self::new(i64::from(self.get()) + i64::from(by.0)).ok()
    }
}

impl Offer {
    /// Takes `quantity` pieces for an order, at least 1. An offer without an inventory level is unchanged. The
    /// error is the stock, if it has fewer pieces.
    pub fn take_stock(self, quantity: i32, now: DateTime<Utc>) -> Result<Change<Self, OfferEvent>, i32> {
        let Some(stock) = self.stock else {
            return Ok(Change::of_existing(self, Vec::new()));
        };
        let left = stock.less(quantity).ok_or(stock.get())?;
        Ok(self.with_stock(left, now))
    }

    /// Returns `quantity` pieces of a cancelled order. An offer that no longer has an inventory level is
    /// unchanged.
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
    use crate::OfferStatus;
    use crate::patch::tests::{at, offer};

    fn stock(pieces: i32) -> Stock {
        Stock::new(i64::from(pieces)).unwrap()
    }

    #[test]
    fn an_adjusted_stock_stays_in_its_range() {
        let adjusted = |pieces, by| stock(pieces).adjusted(StockAdjustment::new(by).unwrap());
        assert_eq!(adjusted(3, -3), Some(stock(0)));
        assert_eq!(adjusted(i32::MAX - 1, 1), Some(stock(i32::MAX)));
        assert_eq!([adjusted(3, -4), adjusted(i32::MAX, 1)], [None; 2]);
        for refused in [0, -1_000_001, 1_000_001] {
            assert!(StockAdjustment::new(refused).is_err());
        }
    }

    proptest! {
        #[test]
        fn an_order_takes_available_stock_and_its_cancellation_returns_it(pieces in 0..20, quantity in 1..20) {
            let before = offer(OfferStatus::Published, None, Some(i64::from(pieces)));
            match before.clone().take_stock(quantity, at(1)) {
                Err(available) => {
                    prop_assert!(quantity > pieces);
                    prop_assert_eq!(available, pieces);
                }
                Ok(taken) => {
                    prop_assert_eq!(taken.after.stock, Some(stock(pieces - quantity)));
                    prop_assert_eq!(taken.after.updated_at, at(1));
                    prop_assert!(taken.events.is_empty());
                    let returned = taken.after.return_stock(quantity, at(2)).after;
                    prop_assert_eq!(returned.updated_at, at(2));
                    prop_assert_eq!(Offer { updated_at: before.updated_at, ..returned }, before);
                }
            }
        }

        #[test]
        fn a_stock_never_overflows(pieces in 0..=i32::MAX, quantity in 1..=i32::MAX) {
            prop_assert!(stock(pieces).plus(quantity).get() >= pieces);
        }
    }
}
