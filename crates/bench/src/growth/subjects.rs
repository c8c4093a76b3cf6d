//! What the rounds measure on each size.

use super::scripts;
use super::stand::Grown;
use crate::maker::Maker;
use crate::measure::Subject;
use crate::options::StandOptions;
use crate::read::subjects::COLUMNS;
use crate::requests::{Offers, get_any};
use crate::write;

/// How many subjects each size has.
pub(super) const EACH: usize = 4;
/// pgbench: a row.
pub(super) const ROW: &str = "row";
/// An offer.
pub(super) const OFFER: &str = "offer";
/// The first page of the largest seller.
pub(super) const PAGE: &str = "page";
/// A keyed change of an offer.
pub(super) const PATCH: &str = "patch";

/// The subjects on one size, in the report's order.
pub(super) fn of<'a>(options: &StandOptions, stand: &'a Grown) -> [Subject<'a>; EACH] {
    let maker = Maker { options };
    let (catalogue, server, tokens) = (stand.catalogue, &stand.server, stand.tokens());
    let first: Vec<_> = tokens.iter().take(1).copied().collect();
    let row = scripts::row(&stand.database, COLUMNS, catalogue);
    let patches = write::patches_of(catalogue, &tokens);
    [
        maker.pgbench(ROW, "`pgbench`: one row by its key", row),
        maker.http(
            OFFER,
            "`GET /v1/offers/{id}`",
            server,
            Offers::of_all(catalogue, &tokens),
        ),
        maker.http(
            PAGE,
            "`GET /v1/offers?limit=50`, first page of the largest seller",
            server,
            get_any("/v1/offers?limit=50", &first),
        ),
        maker.http(PATCH, "`PATCH /v1/offers/{id}`, keyed", server, patches),
    ]
}
