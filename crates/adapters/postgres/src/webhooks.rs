//! Subscriptions, their lanes and their deliveries.

mod aside;
mod claim;
mod delivery_row;
mod directory;
mod due;
mod ending;
mod lanes;
mod queue;
mod reader;
mod settle;
mod store;
mod subscription_row;
mod top_up;
mod unreadable;

pub(crate) use self::{
    directory::AllDeliveries,
    ending::{Ended, end_subscriptions, remove_subscriptions, wake_lanes},
    lanes::StoredLanes,
    reader::StoredSubscriptions,
};
