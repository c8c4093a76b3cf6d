//! What is promised about the token endpoint.

use super::key;
use super::report::Findings;
use crate::figures::real;
use crate::report::bars::{Bar, at_least, number, ratio};
use crate::report::subjects::find;

/// All of them.
pub(super) fn all(findings: &Findings) -> anyhow::Result<Vec<Bar>> {
    let subject = |key| find(&findings.measured, key);
    let (token_rows, token) = (subject(key::TOKEN_ROWS)?, subject(key::TOKEN)?);
    let (refresh_rows, refresh) = (subject(key::REFRESH_ROWS)?, subject(key::REFRESH)?);
    let cores = real(u64::try_from(std::thread::available_parallelism()?.get())?);
    let each_core = token.spread(|sample| sample.rate / cores);
    Ok(vec![
        ratio(
            "one client's token ÷ pgbench's transaction with the same inserts",
            token.ratio_to(token_rows),
        )
        .bar(at_least, 0.5),
        ratio(
            "the same by CPU time: all that pgbench's transaction costs ÷ all that the token costs",
            token_rows.over(token, |sample| sample.cpu.sum()),
        ),
        ratio(
            "one client's token ÷ pgbench's one statement with the same inserts",
            token.ratio_to(subject(key::TOKEN_STATEMENT)?),
        ),
        number("clients' tokens a second, for each core", each_core).bar(at_least, 1_200.0),
        ratio(
            "one refresh ÷ pgbench's same transaction",
            refresh.ratio_to(refresh_rows),
        )
        .bar(at_least, 0.4),
        ratio(
            "the same by CPU time",
            refresh_rows.over(refresh, |sample| sample.cpu.sum()),
        ),
    ])
}
