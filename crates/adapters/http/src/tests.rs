//! The listener as clients see it, over mocks of the ports.

pub(crate) mod fakes;
pub(crate) mod fixture;
pub(crate) mod logs;

mod api_headers;
mod api_order;
mod client_authentication;
mod failures;
mod me;
mod measured;
mod metadata;
mod offer_list;
mod one_offer;
mod token_endpoint;
mod token_limits;
mod wire;
