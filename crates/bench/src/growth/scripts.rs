//! What pgbench reads beside our endpoints. Sellers' ids follow from their numbers here, so its statement makes them as it
//! makes the offers'.

use super::sellers::SELLER_HIGH;
use crate::catalogue::{Catalogue, ID_HIGH, ID_LOW};
use crate::pgbench::Script;

/// One row by its primary key, of all offers at random.
pub(super) fn row(database: &str, columns: &str, catalogue: Catalogue) -> Script {
    let last = catalogue.offers - 1;
    let seller = catalogue.seller_expression(":n");
    let text = format!(
        "\\set n random(0, {last})\n\
         \\set seller {ID_LOW} + {seller}\n\
         \\set low {ID_LOW} + :n\n\
         select {columns} from offers where seller_id = ('{SELLER_HIGH}' || :seller)::uuid \
         and id = ('{ID_HIGH}' || :low)::uuid;\n"
    );
    Script {
        database: database.to_owned(),
        text,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::growth::{fill, sellers};
    use crate::migrated::{self, DATABASE};
    use crate::pgbench;
    use crate::progress::Progress;

    #[tokio::test]
    async fn every_row_is_found() {
        let cluster = migrated::cluster().await;
        let catalogue = Catalogue::new(60, 3);
        sellers::make(&cluster, DATABASE, catalogue.sellers)
            .await
            .unwrap();
        fill::offers(&cluster, DATABASE, catalogue, Progress::new())
            .await
            .unwrap();
        // A row that is not found divides by zero.
        let script = row(DATABASE, "1 / count(*)", catalogue);
        let run = pgbench::run(&cluster, &script, 2, Duration::from_secs(1))
            .await
            .unwrap();
        assert!(run.transactions > 10, "{run:?}");
    }
}
