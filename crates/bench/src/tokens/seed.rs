//! Applications by their numbers, and families to refresh, by plain SQL: consenting in a browser is not what is measured here.

use crate::cluster::Cluster;
use crate::stand::Stand;

/// Applications by their numbers, with whose they are.
pub(super) const APPLICATIONS: &str = "bench_applications";
/// Numbers that rise, of which ids are made.
pub(super) const IDS: &str = "bench_ids";
/// The stored form of the scopes that tokens get: of offers, orders and shipments.
pub(super) const SCOPES: u32 = 15;

/// Makes the tables that the scripts go by, and connects every seller with the own application.
pub(super) async fn applications(cluster: &Cluster, stand: &Stand) -> anyhow::Result<()> {
    let clients = stand.sellers.iter().map(|seller| seller.client_id.as_str());
    let clients: Vec<_> = clients.map(client_uuid).collect();
    store(cluster, &stand.database, &stand.seller_ids(), &clients).await
}

/// The id of an application as it is stored.
fn client_uuid(client_id: &str) -> &str {
    client_id.strip_prefix("psa_").unwrap_or(client_id)
}

/// Stores sellers with their applications.
pub(super) async fn store(
    cluster: &Cluster,
    database: &str,
    sellers: &[&str],
    clients: &[&str],
) -> anyhow::Result<()> {
    let (sellers, clients) = (sellers.join(","), clients.join(","));
    let sql = format!(
        "create sequence {IDS}; \
         create table {APPLICATIONS} (n bigint primary key, seller_id uuid not null, client_id uuid not null); \
         insert into {APPLICATIONS} select n - 1, seller_id, client_id \
           from unnest('{{{sellers}}}'::uuid[], '{{{clients}}}'::uuid[]) with ordinality as a (seller_id, client_id, n); \
         insert into connections (client_id, seller_id, connected_at) \
           select client_id, seller_id, api_now() from {APPLICATIONS}"
    );
    cluster.sql(database, &sql).await?;
    cluster
        .sql(database, &format!("vacuum (analyze) {APPLICATIONS}"))
        .await?;
    Ok(())
}

/// Makes so many families with a refresh token each, of the applications in turn, and gives the tokens.
pub(super) async fn families(cluster: &Cluster, database: &str, count: u16) -> anyhow::Result<Vec<String>> {
    let sql = format!(
        "with made as materialized (select i, seller_id, client_id, api_uuid(api_now()) as family \
           from generate_series(0, {count} - 1) i \
           join {APPLICATIONS} on n = i % (select count(*) from {APPLICATIONS})), \
         stored as (insert into families (id, seller_id, client_id, kind, scopes, generation) \
           select family, seller_id, client_id, 'authorization_code', {SCOPES}, 1 from made), \
         tokens as materialized (select i, family, 'ps_rt_' || translate(encode(uuid_send(family) || \
           sha256(uuid_send(gen_random_uuid())), 'base64'), '+/', '-_') as token from made), \
         kept as (insert into refresh_tokens (family_id, hash, scopes, expires_at) \
           select family, sha256(convert_to(token, 'UTF8')), {SCOPES}, api_now() + interval '90 days' from tokens) \
         select token from tokens order by i"
    );
    cluster.sql(database, &sql).await
}
