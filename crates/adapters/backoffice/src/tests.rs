//! The listener as its clients see it, over mocks of the ports.

pub(crate) mod fixture;
pub(crate) mod rows;

mod applications;
mod audit;
mod changes;
mod departures;
mod failures;
mod health;
mod idempotency;
mod import;
mod links;
mod moderation;
mod offers;
mod order_moves;
mod order_of_checks;
mod orders;
mod personal_tokens;
mod sellers;
mod shipments;
mod wire;
