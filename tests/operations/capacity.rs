//! The table of capacity against the figures that the bench has written down.

use std::fs;

use crate::root;

/// Rows of the table; where their figures stand: the heading above them, what the row begins with, and which columns hold the rate
/// and both costs.
const ROWS: [(&str, &str, &str, [Option<usize>; 3]); 8] = [
    (
        "`GET /v1/offers/{id}`",
        "### CPU time and statements per request",
        "`GET /v1/offers/{id}`, 1 000 000",
        [None, Some(0), Some(1)],
    ),
    (
        "`GET /v1/offers`, 50",
        "### CPU time and statements per request",
        "`GET /v1/offers?limit=50`, first",
        [None, Some(0), Some(1)],
    ),
    (
        "`GET /v1/orders`, 50",
        "### CPU time per write",
        "`GET /v1/orders?limit=50`, first",
        [None, Some(0), Some(1)],
    ),
    (
        "`PATCH /v1/offers/{id}`",
        "### CPU time per write",
        "`PATCH /v1/offers/{id}`, keyed",
        [None, Some(0), Some(1)],
    ),
    (
        "`POST /v1/orders/{id}/shipments`",
        "### CPU time per write",
        "`POST /v1/orders/{id}/shipments`, keyed",
        [None, Some(0), Some(1)],
    ),
    (
        "`POST /oauth/token` of a client",
        "### CPU time per token",
        "`POST /oauth/token`, `client_credentials`",
        [None, Some(0), Some(1)],
    ),
    (
        "a webhook delivery",
        "### Backlogs",
        "200 subscriptions",
        [Some(0), Some(1), Some(2)],
    ),
    (
        "… one subscription",
        "### Backlogs",
        "one subscription",
        [Some(0), Some(1), Some(2)],
    ),
];
/// Where the rates of requests stand.
const RATES: [(&str, &str, &str); 6] = [
    (
        "`GET /v1/offers/{id}`",
        "### Reads",
        "`GET /v1/offers/{id}`, 1 000 000",
    ),
    (
        "`GET /v1/offers`, 50",
        "### Reads",
        "`GET /v1/offers?limit=50`, first",
    ),
    (
        "`GET /v1/orders`, 50",
        "### Writes, and lists of orders",
        "`GET /v1/orders?limit=50`, first",
    ),
    (
        "`PATCH /v1/offers/{id}`",
        "### Writes, and lists of orders",
        "`PATCH /v1/offers/{id}`, keyed",
    ),
    (
        "`POST /v1/orders/{id}/shipments`",
        "### Writes, and lists of orders",
        "`POST /v1/orders/{id}/shipments`, keyed",
    ),
    (
        "`POST /oauth/token` of a client",
        "### Tokens and refreshes",
        "`POST /oauth/token`, `client_credentials`",
    ),
];

fn page(name: &str) -> String {
    fs::read_to_string(root().join("docs").join(name)).unwrap()
}

/// The numbers of a row below a heading, without what stands in brackets; those that are none are left out.
#[track_caller]
fn numbers(page: &str, heading: &str, begins: &str) -> Vec<f64> {
    let (_, below) = page
        .split_once(&format!("\n{heading}\n"))
        .unwrap_or_else(|| panic!("there is no {heading}"));
    let row = below
        .lines()
        .take_while(|line| !line.starts_with('#'))
        .find(|line| line.strip_prefix("| ").is_some_and(|row| row.starts_with(begins)))
        .unwrap_or_else(|| panic!("{heading} has no row {begins}"));
    let cells = row.trim_matches('|').split('|').skip(1);
    cells
        .filter_map(|cell| {
            cell.split('(')
                .next()
                .unwrap()
                .replace([' ', '\u{a0}', '\u{202f}'], "")
                .parse()
                .ok()
        })
        .collect()
}

/// What planning by one number instead of the other costs nobody.
#[track_caller]
fn is_near(what: &str, told: f64, measured: f64) {
    assert!(
        (told / measured - 1.0).abs() < 0.25,
        "{what}: docs/OPERATIONS.md tells {told}, docs/PERFORMANCE.md {measured}"
    );
}

#[test]
fn the_table_tells_what_was_measured() {
    let (operations, performance) = (page("OPERATIONS.md"), page("PERFORMANCE.md"));
    for (row, heading, begins) in RATES {
        let told = numbers(&operations, "## Capacity", row);
        is_near(row, told[0], numbers(&performance, heading, begins)[0]);
    }
    for (row, heading, begins, columns) in ROWS {
        let told = numbers(&operations, "## Capacity", row);
        let measured = numbers(&performance, heading, begins);
        assert_eq!(told.len(), 3, "{row}");
        for (told, column) in told.into_iter().zip(columns) {
            if let Some(column) = column {
                is_near(row, told, measured[column]);
            }
        }
    }
}
