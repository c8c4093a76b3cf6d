//! What one request asks of PostgreSQL: its statements and round trips, counted on the wire.

use anyhow::ensure;

use super::subjects::Writes;
use crate::cluster::Cluster;
use crate::figures::real;
use crate::http::Connection;
use crate::program::Program;
use crate::progress::Progress;
use crate::requests::Requests;
use crate::server::Server;
use crate::stand::Stand;
use crate::tap::{Tally, Tap};

/// Requests before those that are counted, so that every connection has prepared its statements.
const BEFORE: u64 = 64;
/// Requests that are counted.
const COUNTED: u64 = 100;
/// How much of a statement is shown, in characters.
const SHOWN: usize = 44;

/// What each request asked, on average.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Asked {
    /// Round trips.
    pub(super) round_trips: f64,
    /// Statements, by their beginnings, with how often each was executed; the rare ones of others left out.
    pub(super) statements: Vec<(String, f64)>,
}

impl Asked {
    /// All statements.
    pub(super) fn count(&self) -> f64 {
        self.statements.iter().map(|(_, times)| times).sum()
    }

    fn of(tally: &Tally, requests: u64) -> Self {
        let each = |times: u64| real(times) / real(requests);
        let statements = tally.statements.iter();
        let statements = statements.map(|(sql, times)| (shown(sql), each(*times)));
        Self {
            round_trips: each(tally.round_trips),
            statements: statements.filter(|(_, times)| *times >= 0.1).collect(),
        }
    }
}

/// Counts keyed changes and keyed shipments, on a server of their own without workers, one request after another, so that
/// none shares a statement with others.
pub(super) async fn measure(
    cluster: &Cluster,
    program: &Program,
    stand: &Stand,
    writes: &Writes,
    progress: Progress,
) -> anyhow::Result<[Asked; 2]> {
    let _step = progress.step("counting statements and round trips");
    let tap = Tap::open(cluster)?;
    let url = cluster.url_through(tap.folder(), &stand.database);
    let settings = [("SELLER_API__SERVER__WORKERS", "none")];
    let log = cluster.scratch("counts.log");
    let server = Server::start_with(program, &url, &stand.key, &log, &settings).await?;
    let patches = count(&server, &tap, &writes.patches).await?;
    let shipments = count(&server, &tap, &writes.shipments).await?;
    server.stop().await?;
    Ok([patches, shipments])
}

async fn count(server: &Server, tap: &Tap, (requests, expected): &(Requests, u16)) -> anyhow::Result<Asked> {
    let mut connection = Connection::open(server.public).await?;
    let mut random = fastrand::Rng::with_seed(1);
    let mut request = Vec::new();
    for number in 0..BEFORE + COUNTED {
        if number == BEFORE {
            tap.take();
        }
        requests.write(&mut random, &mut request)?;
        let status = connection.exchange(&request).await?.status;
        ensure!(status == *expected, "a request was answered {status}");
    }
    Ok(Asked::of(&tap.take(), COUNTED))
}

/// A statement's beginning; of one that begins with table expressions, what the first of them that writes does.
fn shown(sql: &str) -> String {
    let written = ["insert into ", "update "]
        .iter()
        .filter_map(|word| sql.find(word))
        .min();
    let (before, rest) = match written {
        Some(place) if sql.starts_with("with ") => ("with … ", sql.get(place..).unwrap_or(sql)),
        _ => ("", sql),
    };
    let mut text: String = before.chars().chain(rest.chars()).take(SHOWN).collect();
    if rest.chars().count() + before.chars().count() > SHOWN {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_rare_is_others() {
        let statements = [("begin", 100), ("select probe", 3)];
        let tally = Tally {
            round_trips: 700,
            statements: statements.map(|(sql, times)| (sql.to_owned(), times)).into(),
        };
        let expected = Asked {
            round_trips: 7.0,
            statements: vec![("begin".to_owned(), 1.0)],
        };
        assert_eq!(Asked::of(&tally, 100), expected);
    }

    #[test]
    fn statements_are_shown_by_what_they_do() {
        assert_eq!(shown("commit"), "commit");
        let long = format!(
            "with clock as (select 1), x as (insert into rates {}",
            "y".repeat(90)
        );
        let text = shown(&long);
        assert!(
            text.starts_with("with … insert into rates yy") && text.ends_with('…'),
            "{text}"
        );
    }
}
