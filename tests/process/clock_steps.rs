//! A process's clock is hours off the database's and steps while the process runs. All comparisons use the
//! database's time.

use std::{collections::BTreeSet, env::consts::ARCH, fs, path::Path};

use blackbox::{World, local_receivers, there, until};
use chrono::Utc;
use testkit::{OwnPostgres, ServerOptions};

use crate::metrics::value_at;
use crate::{PROGRAM, ledger::Ledger};

/// The path of Debian's libfaketime, in the folder of the machine's architecture. This form is right for the
/// architectures that the program is built for.
fn library() -> String {
    format!("/usr/lib/{ARCH}-linux-gnu/faketime/libfaketimeMT.so.1")
}

/// Options that give a process the clock in `file`. Its monotonic clock stays unchanged, as when a machine's
/// time is set.
fn with_clock(options: ServerOptions, file: &Path) -> ServerOptions {
    options
        .set("LD_PRELOAD", library())
        .set("FAKETIME_TIMESTAMP_FILE", file.display())
        .set("FAKETIME_NO_CACHE", 1)
        .set("DONT_FAKE_MONOTONIC", 1)
}

/// Sets that clock atomically.
fn set_clock(file: &Path, step: &str) {
    let next = file.with_extension("next");
    fs::write(&next, step).unwrap();
    fs::rename(&next, file).unwrap();
}

#[tokio::test]
#[expect(
    clippy::disallowed_methods,
    reason = "the true time, which the process does not have"
)]
async fn a_process_whose_clock_steps_by_hours_goes_by_the_databases() {
    if there(library().into(), "the package faketime has it").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("clock");
    set_clock(&file, "-1h");
    let postgres = OwnPostgres::start(|options| options).await;
    let mut world = World::over(PROGRAM, postgres.database(), local_receivers).await;
    let options = with_clock(world.options.clone(), &file);
    let url = world.database.url().to_owned();
    world.served_by(&options, &url).await;
    let differs = |log: &str| log.contains("clock differs");
    world.server.log_with(differs).await;
    let difference = value_at(&world.server.backoffice_url, "database_clock_difference_seconds").await;
    assert!((3_590.0..3_610.0).contains(&difference), "{difference}");

    let (own, receiver, hook) = world.subscribed().await;
    let mut ledger = Ledger::open(&world).await;
    let mut deliveries = 0;
    for step in ["+0s", "+6h", "-6h", "+400d", "+0s"] {
        set_clock(&file, step);
        // Tokens from before and after the step; the latter lives twelve hours from now.
        world.get(&own.token, "/v1/me").await.expect(200);
        let token = world.token(&own.application).await;
        let me = world.get(&token, "/v1/me").await.expect(200);
        // The rate limit's window uses the database's time, and ends within a minute from now.
        let reset: i64 = me.header("x-ratelimit-reset").unwrap().parse().unwrap();
        assert!(
            (-10..=60).contains(&(reset - Utc::now().timestamp())),
            "{step}: {reset}"
        );
        let expires = &me.json()["token"]["expires_at"];
        let expires: chrono::DateTime<Utc> = expires.as_str().unwrap().parse().unwrap();
        let left = (expires - Utc::now()).num_seconds();
        assert!((43_100..=43_200).contains(&left), "{step}: {left} s");
        // Idempotency keys are stored for the right time.
        assert_eq!(ledger.write(&world, 4).await, 4, "{step}");
        // Deliveries are due by the database's time, and signed.
        let order = world.any_order(&own.seller).await;
        deliveries += 1;
        let arrived = receiver.has(deliveries).await;
        arrived[deliveries - 1].is_signed_by(&hook.secret).await;
        assert_eq!(arrived[deliveries - 1].json()["data"]["order_id"], order.id);
    }
    // The log proves that the process had another clock.
    let log = world.server.log();
    let hours: BTreeSet<_> = log
        .lines()
        .filter_map(|line| line.strip_prefix("{\"timestamp\":\"")?.get(..13))
        .collect();
    assert!(hours.len() >= 4, "{hours:?}");
    // While a result is not recorded, the end of its lease is a lost attempt, which is repeated.
    let recorded = async || world.waiting(&hook.id).await == 0;
    until("the last result", recorded).await;
    ledger.holds(&world).await;
    assert_eq!(receiver.count(), deliveries, "none came twice");
}
