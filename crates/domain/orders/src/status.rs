//! The status names of an order and its payment.

kernel::words! {
    /// The status of an order for one seller (contract: Order status), in the order of progress.
    #[derive(PartialOrd, Ord)]
    pub enum OrderStatus {
        /// Placed, not paid.
        Pending = "pending",
        /// Paid.
        Processing = "processing",
        /// In transit.
        Shipped = "shipped",
        Delivered = "delivered",
        Cancelled = "cancelled",
    }
}

impl OrderStatus {
    /// The status of a whole order from its parts: cancelled if all are, else the least advanced of the parts that are
    /// not. None without parts.
    pub fn aggregate(parts: impl IntoIterator<Item = Self>) -> Option<Self> {
        // `Cancelled` sorts last, so it is the minimum only if all parts are cancelled.
        parts.into_iter().min()
    }
}

kernel::words! {
    /// Whether an order is paid (contract: `payment_status`).
    pub enum PaymentStatus {
        /// Not yet.
        AwaitingPayment = "awaiting_payment",
        /// The payment is booked; unchanged by a later cancellation.
        Paid = "paid",
        /// Cancelled before it was paid.
        Cancelled = "cancelled",
    }
}

#[cfg(test)]
mod tests {
    use super::OrderStatus::{self, Cancelled, Delivered, Processing};
    use super::PaymentStatus;

    #[test]
    fn statuses_have_the_contracts_names() {
        let words = ["pending", "processing", "shipped", "delivered", "cancelled"];
        assert_eq!(OrderStatus::ALL.map(OrderStatus::as_str), words);
        assert_eq!(words.map(OrderStatus::parse), OrderStatus::ALL.map(Some));
        for other in ["", "Pending", "paid"] {
            assert_eq!(OrderStatus::parse(other), None, "{other}");
        }
        let names = PaymentStatus::ALL.map(PaymentStatus::as_str);
        assert_eq!(names, ["awaiting_payment", "paid", "cancelled"]);
    }

    #[test]
    fn the_aggregate_is_the_least_advanced_part_that_is_not_cancelled() {
        let aggregate = |parts: &[OrderStatus]| OrderStatus::aggregate(parts.iter().copied());
        assert_eq!(aggregate(&[]), None);
        assert_eq!(aggregate(&[Cancelled, Cancelled]), Some(Cancelled));
        assert_eq!(aggregate(&[Cancelled, Delivered]), Some(Delivered));
        assert_eq!(aggregate(&[Delivered, Processing, Cancelled]), Some(Processing));
    }
}
