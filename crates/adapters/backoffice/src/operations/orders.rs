//! Orders: placed, read back whole, settled, shipped by the marketplace, freed of their buyer.

mod erase;
mod place;
mod read;
mod settle;
mod ship;
mod view;

use orders::Reason;
use web::{Code, Problem, sentence};

pub(crate) use erase::EraseBuyer;
pub(crate) use place::PlaceOrder;
pub(crate) use read::ReadOrder;
pub(crate) use settle::{BookPayment, CancelOrder, DeliverOrder};
pub(crate) use ship::ShipOrder;

/// A move that the state of a part does not allow, by the contract's code (D103).
fn impossible(refused: orders::Refusal) -> Problem {
    let code = match refused.reason {
        Reason::Cancelled => Code::OrderCancelled,
        Reason::Unpaid => Code::OrderUnpaid,
        Reason::AlreadyShipped => Code::AlreadyShipped,
        Reason::SeveralSellers => Code::MultiSellerOrder,
    };
    Problem::new(code, sentence::of(&refused))
}
