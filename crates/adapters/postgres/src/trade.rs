//! Orders: their rows, how they are read and saved, the parcels that are followed, and the mails about them.

mod directory;
mod documents;
mod mails;
mod page;
mod parcel_queue;
mod parcels;
mod reader;
mod row;
mod save;
mod state;
mod store;
mod words;

pub(crate) use directory::Directory;
pub(crate) use mails::Mails;
pub(crate) use parcel_queue::ParcelQueue;
pub(crate) use reader::OrdersReader;
