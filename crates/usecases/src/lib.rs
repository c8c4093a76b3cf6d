//! The use cases, one file per subject, written against the ports alone, and the unit of work that they run
//! in.
//!
//! A use case takes the narrowest ports that it needs. Its caller begins and commits the transaction: a
//! request pipeline, a worker, an `admin` command or the sandbox's seeding. The exception is
//! [`track_parcels`], which asks a carrier before its transaction. Some ports commit by themselves:
//! `TokenIssuer`, queues.

pub mod account_links;
mod acting;
mod announcement;
pub mod authorize;
pub mod change_offer;
pub mod consent;
pub mod deliver_webhooks;
pub mod erase_buyer;
mod failure;
pub mod feed_offers;
pub mod issue_tokens;
pub mod manage_application;
pub mod operator_tokens;
pub mod own_applications;
pub mod own_wait;
pub mod personal_tokens;
pub mod place_order;
pub mod redeliver;
pub mod revoke_tokens;
pub mod sellers;
pub mod send_mails;
pub mod ship_order;
pub mod shown_once;
pub mod sign_in;
pub mod subscriptions;
pub mod track_parcels;
pub mod transition_order;
mod unit_of_work;

pub use acting::{Acting, ActingOperator, ActingSeller};
pub use announcement::Announcement;
pub use failure::Failure;
pub use unit_of_work::{
    LockSet, MAX_RETRIES, Retryable, Row, Transaction, Turn, UnitOfWork, retry, transact,
};

#[cfg(any(test, feature = "mocks"))]
pub use mocks::MockTransaction;
#[cfg(any(test, feature = "mocks"))]
pub use unit_of_work::MockUnitOfWork;

#[cfg(any(test, feature = "mocks"))]
mod mocks;
#[cfg(test)]
mod test_support;
