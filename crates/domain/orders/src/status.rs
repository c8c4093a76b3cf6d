//! The status names of an order and its payment.

/// The status of an order for one seller (contract: Order status).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OrderStatus {
    /// Placed, not paid.
    Pending,
    /// Paid.
    Processing,
    /// In transit.
    Shipped,
    Delivered,
    Cancelled,
}

impl OrderStatus {
    /// Every status in the contract's order, which is also the order of progress.
    pub const ALL: [Self; 5] = [
        Self::Pending,
        Self::Processing,
        Self::Shipped,
        Self::Delivered,
        Self::Cancelled,
    ];

    /// The contract's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Processing => "processing",
            Self::Shipped => "shipped",
            Self::Delivered => "delivered",
            Self::Cancelled => "cancelled",
        }
    }

    /// The status with this name.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }

    /// The status of a whole order from its parts: cancelled if all are, else the least advanced of the parts that are
    /// not. None without parts.
    pub fn aggregate(parts: impl IntoIterator<Item = Self>) -> Option<Self> {
        // `Cancelled` sorts last, so it is the minimum only if all parts are cancelled.
        parts.into_iter().min()
    }
}

/// Whether an order is paid (contract: `payment_status`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PaymentStatus {
    /// Not yet.
    AwaitingPayment,
    /// The payment is booked; unchanged by a later cancellation.
    Paid,
    /// Cancelled before it was paid.
    Cancelled,
}

impl PaymentStatus {
    /// The contract's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AwaitingPayment => "awaiting_payment",
            Self::Paid => "paid",
            Self::Cancelled => "cancelled",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::OrderStatus::{self, Cancelled, Delivered, Processing};
    use super::PaymentStatus;

    // contract: 4.3, 4.5
    #[test]
    fn statuses_have_the_contracts_names() {
        let words = ["pending", "processing", "shipped", "delivered", "cancelled"];
        assert_eq!(OrderStatus::ALL.map(OrderStatus::as_str), words);
        assert_eq!(words.map(OrderStatus::parse), OrderStatus::ALL.map(Some));
        for other in ["", "Pending", "paid"] {
            assert_eq!(OrderStatus::parse(other), None, "{other}");
        }
        let payment = [
            PaymentStatus::AwaitingPayment,
            PaymentStatus::Paid,
            PaymentStatus::Cancelled,
        ];
        let names = payment.map(PaymentStatus::as_str);
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
