//! The listener as clients see it, over mocks of the ports.

pub(crate) mod fakes;
mod fixture;
mod logs;

mod api_headers;
mod api_order;
mod failures;
mod me;
mod metadata;
mod offer_list;
mod one_offer;
mod token_endpoint;
mod token_limits;
mod wire;
