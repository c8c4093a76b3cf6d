//! Trace collectors: what controls the data they get, and that their failures do not affect requests.

use std::time::{Duration, Instant};

use blackbox::{Collector, World, eventually, requests, tells_of};

use crate::{
    PROGRAM,
    traces::{CALLER, TRACEPARENT, read, traced, watched},
    world,
};

/// The same header without the sampled flag.
const UNSAMPLED: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

/// Stops the world's server and waits for its exit.
async fn stopped(mut world: World) -> World {
    let another = world.another().await;
    let server = std::mem::replace(&mut world.server, another);
    server.terminate();
    assert_eq!(server.exit_code().await, Some(0));
    world
}

#[tokio::test]
async fn only_a_trusted_peer_decides_what_is_recorded_and_a_stop_loses_nothing() {
    for (trusted, recorded) in [("127.0.0.1", vec!["asks-for-it"]), ("", vec![])] {
        let collector = Collector::start().await;
        let world = World::with(PROGRAM, |options| {
            traced(options, &collector)
                .set("SELLER_API__SERVER__TRUSTED_PROXIES", trusted)
                .set("SELLER_API__TRACING__SAMPLE_RATIO", 0)
        })
        .await;
        let (_, token) = world.reader().await;
        read(&world, &token, "says-nothing", "").await;
        read(&world, &token, "wants-it-not", UNSAMPLED).await;
        read(&world, &token, "asks-for-it", TRACEPARENT).await;
        let world = stopped(world).await;
        let spans = collector.spans();
        let requests = spans.iter().filter_map(|span| span.attributes.get("x_trace_id"));
        assert_eq!(requests.collect::<Vec<_>>(), recorded, "trusted: {trusted}");
        assert!(spans.iter().all(|span| span.trace == CALLER.0), "{spans:?}");
        drop(world);
    }
}

#[tokio::test]
async fn a_collector_that_fails_is_told_of_once_and_its_return_too() {
    let collector = Collector::start().await;
    collector.answers(Some(503));
    let world = watched(&collector).await;
    let (_, token) = world.reader().await;
    let failures = |log: &str| log.matches("spans cannot be handed to the collector").count();
    for n in 0..3 {
        let before = collector.requests().len();
        read(&world, &token, &format!("unheard-of-{n}"), "").await;
        eventually("another batch", async || {
            (collector.requests().len() > before).then_some(())
        })
        .await;
    }
    let log = world.server.log_with(|log| failures(log) > 0).await;
    assert_eq!(failures(&log), 1, "{log}");
    let endpoint = format!("{}/v1/traces", collector.url);
    let told = log.lines().find(|line| failures(line) > 0);
    assert!(told.is_some_and(|line| line.contains(&endpoint)), "{told:?}");
    collector.answers(Some(200));
    read(&world, &token, "heard-of-again", "").await;
    let log = world
        .server
        .log_with(|log| log.contains("the collector takes spans again"))
        .await;
    assert_eq!(failures(&log), 1);
    let metrics = world.office_get("/metrics").await.expect(200);
    let metrics = String::from_utf8(metrics.bytes).unwrap();
    for fate in ["lost", "sent"] {
        let counted = metrics
            .lines()
            .find_map(|line| line.strip_prefix(&format!("trace_spans_total{{fate=\"{fate}\"}} ")));
        assert!(
            counted.is_some_and(|count| count.parse::<u64>().unwrap() > 0),
            "{fate}: {counted:?}"
        );
    }
}

#[tokio::test]
async fn a_collector_that_never_answers_delays_no_request_and_no_stop() {
    let collector = Collector::start().await;
    collector.answers(None);
    let world = watched(&collector).await;
    let (_, token) = world.reader().await;
    eventually("a batch that is not answered", async || {
        (!collector.requests().is_empty()).then_some(())
    })
    .await;
    let begun = Instant::now();
    for n in 0..50 {
        read(&world, &token, &format!("not-held-up-{n}"), "").await;
    }
    // Each batch would take 5 s.
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    let begun = Instant::now();
    drop(stopped(world).await);
    // `server.drain`, plus three seconds for the last spans.
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn variables_that_are_not_read_stop_the_start_and_where_nobody_traces_no_line_says_so() {
    let world = world().await;
    let (_, token) = world.reader().await;
    read(&world, &token, "nobody-traces", TRACEPARENT).await;
    let log = world.server.log_with(|log| tells_of(log, "nobody-traces")).await;
    assert!(!log.contains("otel_"), "{log}");
    assert_eq!(
        requests(&log)
            .iter()
            .filter(|line| line["trace_id"] == "nobody-traces")
            .count(),
        1
    );
    let refused = std::process::Command::new(PROGRAM)
        .arg("config")
        .env("SELLER_API__TRACING__OTLP_ENDPOINT", "http://127.0.0.1:4318")
        .env("OTEL_TRACES_SAMPLER", "always_on")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(
        !refused.status.success() && said.contains("OTEL_TRACES_SAMPLER"),
        "{said}"
    );
}
