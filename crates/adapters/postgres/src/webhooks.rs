//! Subscriptions, their lanes and their deliveries.

mod store;
