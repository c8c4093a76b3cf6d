//! The listener as its clients see it, over mocks of the ports.

pub(crate) mod fixture;
pub(crate) mod rows;

mod applications;
mod failures;
mod health;
mod import;
mod offers;
mod order_of_checks;
mod personal_tokens;
mod sellers;
mod wire;
