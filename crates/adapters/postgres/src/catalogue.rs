//! Offers: their rows, and how they are read and saved.

mod bulk;
mod page;
mod page_statement;
mod reader;
mod row;
mod store;

pub(crate) use reader::OffersReader;
