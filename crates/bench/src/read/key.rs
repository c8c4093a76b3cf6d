//! The keys of what the bench of the reading endpoints measures.

/// pgbench: a row of the large table.
pub(crate) const ROW: &str = "row";
/// An offer of the large catalogue, all tokens.
pub(crate) const OFFER: &str = "offer";
/// An offer of the large catalogue, one token.
pub(crate) const ONE_TOKEN: &str = "one-token";
/// The token itself.
pub(crate) const ME: &str = "me";
/// pgbench: the rows of a page.
pub(crate) const PAGE_ROWS: &str = "page-rows";
/// The first page.
pub(crate) const PAGE: &str = "page";
/// A deep page.
pub(crate) const DEEP: &str = "deep";
/// pgbench: a row of the small table.
pub(crate) const SMALL_ROW: &str = "small-row";
/// An offer of the small catalogue.
pub(crate) const SMALL: &str = "small";
