//! The orders that a bench feeds: how many, whose, and under which ids. All follows from an order's number, by which they
//! arrived; sellers take turns, so that their orders lie among each other as they do in a shop.

use crate::catalogue;

/// The share of all orders that the first seller has: one in so many.
const LARGEST_SHARE: u64 = 5;
/// The first 16 of the 32 hexadecimal digits of every order's id.
pub(super) const ID_HIGH: &str = "0198000000007000";

/// As few orders as hold so many that the server ships.
pub(super) const fn orders_to_ship(count: u64) -> u64 {
    // Of five orders, four are there to be shipped, and three of those are the server's.
    count.div_ceil(3) * LARGEST_SHARE
}

/// Orders numbered from 0. Every fifth is the first seller's; they are listed. The others' are shipped, and counted apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Trade {
    /// How many orders there are.
    pub(super) orders: u64,
    /// How many sellers there are, at least two.
    pub(super) sellers: u64,
}

impl Trade {
    /// How many orders the first seller has.
    pub(super) fn largest(self) -> u64 {
        self.orders.div_ceil(LARGEST_SHARE)
    }

    /// How many orders are there to be shipped.
    pub(super) fn shippable(self) -> u64 {
        self.orders - self.largest()
    }

    /// How many of them the server ships, the first ones. The rest is pgbench's, which cannot keep account of what it has
    /// shipped, and now and then ships one again; that costs it the same.
    pub(super) fn servers(self) -> u64 {
        self.shippable() / 4 * 3
    }

    /// The order's number and its seller's, of the n-th order that is there to be shipped.
    pub(super) fn to_ship(self, n: u64) -> (u64, u64) {
        let order = n + n / (LARGEST_SHARE - 1) + 1;
        (order, 1 + n % (self.sellers - 1))
    }

    /// The same as expressions of pgbench's, of its variable `n`.
    pub(super) fn to_ship_expressions(self) -> (String, String) {
        let order = format!(":n + :n / {} + 1", LARGEST_SHARE - 1);
        (order, format!("1 + :n % {}", self.sellers - 1))
    }

    /// SQL for whose the order `i` is, by the seller's number.
    pub(super) fn seller_sql(self) -> String {
        let others = self.sellers - 1;
        format!(
            "case when i % {LARGEST_SHARE} = 0 then 0 else 1 + (i - i / {LARGEST_SHARE} - 1) % {others} end"
        )
    }
}

/// An order's id with a hole of 12 digits for its number.
pub(super) fn order_id_hole() -> String {
    catalogue::hole(ID_HIGH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_as_many_orders_as_shipments_need() {
        let servers = |orders| Trade { orders, sellers: 7 }.servers();
        for count in 1..100 {
            let orders = orders_to_ship(count);
            assert!(servers(orders) >= count && servers(orders - 1) < count, "{count}");
        }
        assert_eq!(orders_to_ship(0), 0);
    }

    #[test]
    fn orders_that_are_shipped_are_all_but_the_first_sellers() {
        let trade = Trade {
            orders: 1_003,
            sellers: 7,
        };
        let shipped: Vec<_> = (0..trade.shippable()).map(|n| trade.to_ship(n).0).collect();
        let expected: Vec<_> = (0..trade.orders).filter(|order| order % 5 != 0).collect();
        assert_eq!(shipped, expected);
        for n in 0..trade.shippable() {
            let (order, seller) = trade.to_ship(n);
            // As the SQL has it.
            assert_eq!(seller, 1 + (order - order / 5 - 1) % 6);
        }
    }
}
