//! Offers: their rows, and how they are read and saved.

mod bulk;
mod one;
mod page;
mod reader;
mod row;
mod store;

pub(crate) use reader::OffersReader;
