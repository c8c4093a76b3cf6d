//! The scripts on the product's own tables: a row that is not found would go unnoticed, and cost nothing.

use std::time::Duration;

use super::*;
use crate::cluster::Cluster;
use crate::migrated::{self, DATABASE, SELLERS, check};
use crate::pgbench::{self, Run};
use crate::tokens::seed;

const CLIENTS: [&str; 2] = [
    "01970000000070008000000000000011",
    "01970000000070008000000000000012",
];

async fn with_applications() -> Cluster {
    let cluster = migrated::cluster().await;
    for (seller, client) in SELLERS.iter().zip(CLIENTS) {
        let sql = format!(
            "insert into applications (client_id, owner_id, name, documentation_url, purpose, client_type, redirect_uris, \
             scopes, status, built_in, secret_hash, created_at, updated_at) values ('{client}', '{seller}', 'App {client}', \
             'https://x.example', 'own_use', 'confidential', '{{}}', 63, 'active', false, sha256('x'), now(), now())"
        );
        cluster.sql(DATABASE, &sql).await.unwrap();
    }
    seed::store(&cluster, DATABASE, &SELLERS, &CLIENTS).await.unwrap();
    cluster
}

async fn run(cluster: &Cluster, script: &Script) -> Run {
    let run = pgbench::run(cluster, script, 2, Duration::from_secs(1))
        .await
        .unwrap();
    assert!(run.transactions > 10, "{run:?}");
    run
}

#[tokio::test]
async fn a_token_is_a_family_with_its_token() {
    for (statements, script) in [(4, token(DATABASE, 2)), (1, token_by_one_statement(DATABASE, 2))] {
        let cluster = with_applications().await;
        assert_eq!(script.statements(), statements);
        let run = run(&cluster, &script).await;
        let both = "families f join access_tokens t on t.family_id = f.id and f.kind = 'client_credentials' \
                    and t.expires_at > now()";
        check(&cluster, &run, &[both, "families", "access_tokens"]).await;
    }
}

#[tokio::test]
async fn a_refresh_uses_the_last_token_up_and_stores_a_pair() {
    let cluster = with_applications().await;
    let script = refresh(DATABASE, 2);
    assert_eq!(script.statements(), 5);
    let run = run(&cluster, &script).await;
    check(
        &cluster,
        &run,
        &["refresh_tokens where used_at is not null", "access_tokens"],
    )
    .await;
    let living =
        "select count(*) from refresh_tokens t join families f on f.id = t.family_id where used_at is null";
    assert_eq!(cluster.sql(DATABASE, living).await.unwrap(), ["2"]);
}

#[tokio::test]
async fn a_seeded_family_has_the_token_that_is_given() {
    let cluster = with_applications().await;
    let tokens = seed::families(&cluster, DATABASE, 3).await.unwrap();
    let stored = tokens.iter().map(|token| {
        assert_eq!(token.len(), "ps_rt_".len() + 64, "{token}");
        format!("sha256('{token}')")
    });
    let stored = stored.collect::<Vec<_>>().join(",");
    let sql = format!(
        "select count(*) from refresh_tokens t join families f on f.id = t.family_id \
         join connections c on c.client_id = f.client_id and c.seller_id = f.seller_id and c.generation = f.generation \
         where t.hash in ({stored})"
    );
    assert_eq!(cluster.sql(DATABASE, &sql).await.unwrap(), ["3"]);
}
