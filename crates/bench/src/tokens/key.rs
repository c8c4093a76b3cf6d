//! The keys of what the bench of the token endpoint measures.

/// pgbench: the rows of a client's token, in a transaction of several statements.
pub(crate) const TOKEN_ROWS: &str = "token-rows";
/// pgbench: the same rows by one statement.
pub(crate) const TOKEN_STATEMENT: &str = "token-statement";
/// A client's token.
pub(crate) const TOKEN: &str = "token";
/// pgbench: the transaction of a refresh.
pub(crate) const REFRESH_ROWS: &str = "refresh-rows";
/// A refresh.
pub(crate) const REFRESH: &str = "refresh";
