//! The listener as clients see it, over mocks of the ports.

pub(crate) mod fakes;
pub(crate) mod fixture;
pub(crate) mod logs;

mod api_headers;
mod api_order;
mod authorization;
mod client_authentication;
mod departed_clients;
mod exchange_order;
mod exchanges;
mod failures;
mod grants;
mod idempotency_keys;
mod idempotent_runs;
mod lost_commits;
mod me;
mod measured;
mod metadata;
mod offer_list;
mod one_offer;
mod one_order;
mod order_list;
mod patch_offer;
mod patch_refusals;
mod revocation;
mod shipment_bodies;
mod shipment_refusals;
mod shipments;
mod token_endpoint;
mod token_limits;
pub(crate) mod trade;
mod usage;
mod webhook_history;
mod webhooks;
mod wire;
mod write_deadlines;
