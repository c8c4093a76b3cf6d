//! Idempotency keys under churn: claimed, completed and cleared in waves.

use std::time::Duration;

use anyhow::Context as _;

use super::operations::Operation;
use super::shop::Shop;
use crate::explained::Cost;
use crate::options::StorageOptions;
use crate::progress::Progress;
use crate::tables::{self, Table};
use crate::write;

/// Requests whose claims are looked at, in each wave.
const REQUESTS: u64 = 40;
/// Keys that are claimed by one transaction and completed by the next one.
const CHUNK: u64 = 500;
/// Time between waves: the server looks for what to vacuum every second.
const PAUSE: Duration = Duration::from_millis(1_500);
/// A remembered answer.
const BODY: &str = "bench_body";

/// What there is after a wave.
#[derive(Debug)]
pub(super) struct Wave {
    /// The table.
    pub(super) table: Table,
    /// What a claim on a key costs.
    pub(super) claim: Cost,
}

/// Waves as the product has the table vacuumed, and waves that nothing is vacuumed after.
pub(super) async fn measure(
    shop: &Shop<'_>,
    operations: &[Operation],
    options: &StorageOptions,
    progress: Progress,
) -> anyhow::Result<[Vec<Wave>; 2]> {
    let patch = operations
        .iter()
        .find(|operation| operation.key == write::key::PATCH);
    let patch = patch.context("changes are not among what is measured")?;
    shop.sql(&format!(
        "create table {BODY} as select body from idempotency where body is not null limit 1"
    ))
    .await?;
    let vacuumed = waves(shop, patch, options, true, progress).await?;
    let left = waves(shop, patch, options, false, progress).await?;
    Ok([vacuumed, left])
}

async fn waves(
    shop: &Shop<'_>,
    patch: &Operation,
    options: &StorageOptions,
    vacuumed: bool,
    progress: Progress,
) -> anyhow::Result<Vec<Wave>> {
    let title = if vacuumed {
        "waves of keys"
    } else {
        "waves of keys without vacuum"
    };
    let step = progress.counted(title, options.waves);
    shop.sql("truncate idempotency").await?;
    shop.sql(&format!(
        "alter table idempotency set (autovacuum_enabled = {vacuumed})"
    ))
    .await?;
    tables::forget(shop.cluster(), &shop.database).await?;
    let mut waves = Vec::new();
    let calls: Vec<_> = patch.calls().into_iter().collect();
    for n in 0..options.waves {
        shop.sql(&wave(n, options.wave)).await?;
        let told = shop.watch(&calls, REQUESTS).await?.concat();
        let claims = told
            .iter()
            .filter(|one| one.sql.starts_with("insert into idempotency"));
        let claim = Cost::of(&claims.collect::<Vec<_>>())?;
        // Those of this wave stay, as what is remembered does.
        shop.sql(&format!(
            "delete from idempotency where key not like 'wave-{n}-%'"
        ))
        .await?;
        waves.push(Wave {
            table: tables::one(shop.cluster(), &shop.database, "idempotency").await?,
            claim,
        });
        if vacuumed {
            tokio::time::sleep(PAUSE).await;
        }
        step.advance(1);
    }
    Ok(waves)
}

/// Claims keys and completes them, as requests do, but many at once.
fn wave(n: u64, keys: u64) -> String {
    let chunks = keys.div_ceil(CHUNK);
    format!(
        "do $$ begin for chunk in 1..{chunks} loop \
           insert into idempotency (seller_id, key, fence, fingerprint, created_at, expires_at) \
             select md5((i % 1000)::text)::uuid, 'wave-{n}-' || chunk || '-' || md5(i::text || chunk), gen_random_uuid(), \
               sha256(int8send(i)), api_now(), api_now() + interval '30 seconds' from generate_series(1::bigint, {CHUNK}) i; \
           commit; \
           update idempotency set status = 200, body = b.body, expires_at = api_now() + interval '24 hours' from {BODY} b, \
             generate_series(1::bigint, {CHUNK}) i where seller_id = md5((i % 1000)::text)::uuid \
             and key = 'wave-{n}-' || chunk || '-' || md5(i::text || chunk); \
           commit; \
         end loop; end $$"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::migrated::{self, DATABASE};

    #[tokio::test]
    async fn a_wave_claims_and_completes() {
        let cluster = migrated::cluster().await;
        let body = format!("create table {BODY} as select 'x'::bytea as body");
        cluster.sql(DATABASE, &body).await.unwrap();
        cluster.sql(DATABASE, &wave(3, 2 * CHUNK)).await.unwrap();
        let completed = "select count(*) from idempotency where status = 200 and key like 'wave-3-%'";
        let completed = cluster.sql(DATABASE, completed).await.unwrap().concat();
        assert_eq!(completed, (2 * CHUNK).to_string());
    }
}
