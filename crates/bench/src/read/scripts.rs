//! What pgbench reads beside our endpoints: the same columns of the same rows.

use crate::catalogue::{Catalogue, ID_HIGH, ID_LOW};
use crate::pgbench::Script;

/// One row by its primary key, of all offers at random.
///
/// pgbench has no variables of texts, so the statement makes both ids of its parameters: the seller's by a place in an
/// array, the offer's from decimal digits. That costs it about 1 % (see `docs/PERFORMANCE.md`).
pub(super) fn row(database: &str, columns: &str, catalogue: Catalogue, sellers: &[&str]) -> Script {
    let last = catalogue.offers - 1;
    let seller = catalogue.seller_expression(":n");
    let sellers = sellers.join(",");
    let text = format!(
        "\\set n random(0, {last})\n\
         \\set seller 1 + {seller}\n\
         \\set low {ID_LOW} + :n\n\
         select {columns} from offers where seller_id = ('{{{sellers}}}'::uuid[])[:seller] \
         and id = ('{ID_HIGH}' || :low)::uuid;\n"
    );
    Script {
        database: database.to_owned(),
        text,
    }
}

/// The first page of the first seller's offers, newest first: 50 rows and one that tells whether more follow.
pub(super) fn page(database: &str, columns: &str, seller: &str) -> Script {
    let text = format!(
        "select {columns} from offers where seller_id = '{seller}' order by created_at desc, id desc limit 51;\n"
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
    use crate::cluster::Cluster;
    use crate::pgbench;

    #[test]
    fn a_row_is_named_by_two_parameters() {
        let script = row("d", "id", Catalogue::new(1_000, 3), &["a", "b", "c"]);
        assert!(script.text.contains("random(0, 999)"), "{}", script.text);
        assert!(
            script.text.contains("('{a,b,c}'::uuid[])[:seller]"),
            "{}",
            script.text
        );
        assert_eq!(script.text.matches("\\set").count(), 3);
    }

    #[tokio::test]
    async fn every_script_runs() {
        let cluster = Cluster::start("16MB", None).await.unwrap();
        let catalogue = Catalogue::new(20, 2);
        let sellers = [
            "01970000-0000-7000-8000-000000000001",
            "01970000-0000-7000-8000-000000000002",
        ];
        let table = "create table offers (seller_id uuid, id uuid, created_at timestamptz default now(), \
                     primary key (seller_id, id))";
        cluster.sql("postgres", table).await.unwrap();
        for offer in 0..catalogue.offers {
            let seller = if offer < catalogue.largest() {
                sellers[0]
            } else {
                sellers[1]
            };
            let id = crate::catalogue::offer_id(offer);
            let row = format!("insert into offers values ('{seller}', '{id}')");
            cluster.sql("postgres", &row).await.unwrap();
        }
        // A row that is not found would go unnoticed; this divides by zero then.
        let one_row = row("postgres", "1", catalogue, &sellers);
        let one_row = Script {
            text: one_row.text.replace("select 1", "select 1 / count(*)"),
            ..one_row
        };
        let one_page = page("postgres", "id", sellers[0]);
        for script in [one_row, one_page] {
            let run = pgbench::run(&cluster, &script, 2, Duration::from_secs(1))
                .await
                .unwrap();
            assert!(run.transactions > 10 && run.rate > 10.0, "{run:?}");
        }
    }
}
