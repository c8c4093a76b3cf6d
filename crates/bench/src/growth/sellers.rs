//! Sellers, their applications and tokens, by plain SQL: registering a hundred thousand of them one by one is not what is
//! measured here. Their ids follow from their numbers, so that pgbench can name any of them.

#[cfg(test)]
use crate::catalogue;
use crate::catalogue::ID_LOW;
use crate::cluster::Cluster;

/// The first half of every seller's id; the other one is `ID_LOW` plus the seller's number.
pub(super) const SELLER_HIGH: &str = "0196000000007000";
/// The same of its application's, and of the family of its token.
const APPLICATION_HIGH: &str = "0196000000017000";
const FAMILY_HIGH: &str = "0196000000027000";
/// The stored form of all scopes that a load needs.
const SCOPES: u32 = 15;

/// A seller's id.
#[cfg(test)]
pub(super) fn seller_id(n: u64) -> String {
    catalogue::canonical(SELLER_HIGH, &(ID_LOW + n).to_string())
}

/// Stores so many sellers, each with an application, and gives their access tokens, in the sellers' order.
pub(super) async fn make(cluster: &Cluster, database: &str, count: u64) -> anyhow::Result<Vec<String>> {
    let last = count.saturating_sub(1);
    let statements = [
        format!(
            "insert into sellers (id, name, email, created_at) \
             select ('{SELLER_HIGH}' || {ID_LOW} + n)::uuid, 'Seller ' || n, 'grown-' || n || '@sellers.example', api_now() \
             from generate_series(0, {last}) n"
        ),
        format!(
            "insert into applications (client_id, owner_id, name, documentation_url, purpose, client_type, redirect_uris, \
             scopes, status, built_in, secret_hash, created_at, updated_at) \
             select ('{APPLICATION_HIGH}' || {ID_LOW} + n)::uuid, ('{SELLER_HIGH}' || {ID_LOW} + n)::uuid, 'Grown ' || n, \
             'https://docs.example/bench', 'own_use', 'confidential', '{{}}', {SCOPES}, 'active', false, \
             sha256(int8send(n)), api_now(), api_now() from generate_series(0::bigint, {last}) n"
        ),
        format!(
            "insert into families (id, seller_id, client_id, kind, scopes) \
             select ('{FAMILY_HIGH}' || {ID_LOW} + n)::uuid, ('{SELLER_HIGH}' || {ID_LOW} + n)::uuid, \
             ('{APPLICATION_HIGH}' || {ID_LOW} + n)::uuid, 'client_credentials', {SCOPES} from generate_series(0, {last}) n"
        ),
    ];
    for statement in statements {
        cluster.sql(database, &statement).await?;
    }
    let tokens = format!(
        "with made as materialized (select n, ('{FAMILY_HIGH}' || {ID_LOW} + n)::uuid as family \
           from generate_series(0, {last}) n), \
         tokens as materialized (select n, family, 'ps_at_' || translate(encode(uuid_send(family) || \
           sha256(uuid_send(gen_random_uuid())), 'base64'), '+/', '-_') as token from made), \
         kept as (insert into access_tokens (family_id, hash, expires_at) \
           select family, sha256(convert_to(token, 'UTF8')), api_now() + interval '12 hours' from tokens) \
         select token from tokens order by n"
    );
    cluster.sql(database, &tokens).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::migrated::{self, DATABASE};

    #[tokio::test]
    async fn every_seller_has_a_token() {
        let cluster = migrated::cluster().await;
        let tokens = make(&cluster, DATABASE, 3).await.unwrap();
        assert_eq!(tokens.len(), 3);
        assert!(tokens.iter().all(|token| token.len() == 6 + 64), "{tokens:?}");
        let found = cluster
            .sql(
                DATABASE,
                &format!(
                    "select f.seller_id from access_tokens t join families f on f.id = t.family_id \
                     where t.hash = sha256(convert_to('{}', 'UTF8'))",
                    tokens[2]
                ),
            )
            .await
            .unwrap();
        assert_eq!(found, [seller_id(2)]);
    }
}
