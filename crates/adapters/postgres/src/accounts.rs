//! Sellers, applications, tokens and counts: their rows, and how they are read and saved.

mod application_row;
mod applications;
mod client_tokens;
mod directory;
mod operator_tokens;
mod rates;
mod sellers;
mod tokens;

pub(crate) use application_row::limit_from;
pub(crate) use applications::Applications;
pub(crate) use client_tokens::IssuedTokens;
pub(crate) use directory::AllApplications;
pub(crate) use operator_tokens::StoredOperatorTokens;
pub(crate) use rates::{CountDeed, Counted, Rates, WINDOW, count};
pub(crate) use sellers::{SellerColumns, SellerRow, Sellers};
