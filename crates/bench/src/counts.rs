//! What one request asks of PostgreSQL: its statements and round trips, counted on the wire.

use anyhow::ensure;

use crate::cluster::Cluster;
use crate::figures::real;
use crate::http::Connection;
use crate::program::Program;
use crate::progress::Progress;
use crate::requests::{Calls, of_connection};
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
pub(crate) struct Asked {
    /// Round trips.
    pub(crate) round_trips: f64,
    /// The fewest of one request. On a busy machine some take more: what goes out together is then answered in part before the
    /// rest has gone.
    pub(crate) fewest_round_trips: u64,
    /// Statements of every kind.
    pub(crate) all: f64,
    /// Statements, by their beginnings, with how often each was executed; the rare ones left out, which are others'.
    pub(crate) statements: Vec<(String, f64)>,
}

impl Asked {
    /// All statements.
    pub(crate) fn count(&self) -> f64 {
        self.statements.iter().map(|(_, times)| times).sum()
    }

    const fn nothing() -> Self {
        Self {
            round_trips: 0.0,
            fewest_round_trips: 0,
            all: 0.0,
            statements: Vec::new(),
        }
    }

    /// What each of so many requests asked, alone.
    fn of(tally: &Tally, requests: u64) -> Self {
        Self::leaving_out(0.1, tally, requests)
    }

    /// What each of many asked that shared statements.
    pub(crate) fn of_all(tally: &Tally, requests: u64) -> Self {
        Self::leaving_out(0.005, tally, requests)
    }

    fn leaving_out(rare: f64, tally: &Tally, requests: u64) -> Self {
        let each = |times: u64| real(times) / real(requests);
        let statements = tally.statements.iter();
        let statements = statements.map(|(sql, times)| (shown(sql), each(*times)));
        Self {
            round_trips: each(tally.round_trips),
            fewest_round_trips: tally.round_trips / requests.max(1),
            all: each(tally.statements.values().sum()),
            statements: statements.filter(|(_, times)| *times >= rare).collect(),
        }
    }
}

/// Counts requests, each of which is answered by its status, on a server of their own without workers, one request after
/// another, so that none shares a statement with others.
pub(crate) async fn measure<const N: usize>(
    cluster: &Cluster,
    program: &Program,
    stand: &Stand,
    kinds: [&Calls; N],
    progress: Progress,
) -> anyhow::Result<[Asked; N]> {
    let _step = progress.step("counting statements and round trips");
    let tap = Tap::open(cluster)?;
    let url = cluster.url_through(tap.folder(), &stand.database);
    let settings = [("SELLER_API__SERVER__WORKERS", "none")];
    let log = cluster.scratch("counts.log");
    let server = Server::start_with(program, &url, &stand.key, &log, &settings).await?;
    let mut asked = [const { Asked::nothing() }; N];
    for (asked, kind) in asked.iter_mut().zip(kinds) {
        *asked = count(&server, &tap, kind).await?;
    }
    server.stop().await?;
    Ok(asked)
}

async fn count(server: &Server, tap: &Tap, calls: &Calls) -> anyhow::Result<Asked> {
    let mut connection = Connection::open(server.address(calls.listener)).await?;
    let requests = of_connection(&calls.requests, 0);
    let mut random = fastrand::Rng::with_seed(1);
    let mut request = Vec::new();
    let (mut tally, mut fewest) = (Tally::default(), u64::MAX);
    for number in 0..BEFORE + COUNTED {
        let before = tap.take();
        if number > BEFORE {
            fewest = fewest.min(before.round_trips);
            tally.add(before);
        }
        requests.write(&mut random, &mut request)?;
        let response = connection.exchange(&request).await?;
        let (status, excerpt) = (response.status, response.excerpt());
        ensure!(
            status == calls.expected,
            "a request was answered {status}: {excerpt}"
        );
        requests.answered(response.body)?;
    }
    let last = tap.take();
    fewest = fewest.min(last.round_trips);
    tally.add(last);
    Ok(Asked {
        fewest_round_trips: fewest,
        ..Asked::of(&tally, COUNTED)
    })
}

/// A statement's beginning; of one that begins with table expressions, what the first of them that writes does.
fn shown(sql: &str) -> String {
    let written = ["(insert into ", "(update ", ") insert into ", ") update "]
        .iter()
        .filter_map(|word| Some(sql.find(word)? + word.find(char::is_alphabetic)?))
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
            fewest_round_trips: 7,
            all: 1.03,
            statements: vec![("begin".to_owned(), 1.0)],
        };
        assert_eq!(Asked::of(&tally, 100), expected);
    }

    #[test]
    fn statements_are_shown_by_what_they_do() {
        assert_eq!(shown("commit"), "commit");
        let long = format!(
            "with clock as (select 1 from t for update), x as (insert into rates {}",
            "y".repeat(90)
        );
        let text = shown(&long);
        assert!(
            text.starts_with("with … insert into rates yy") && text.ends_with('…'),
            "{text}"
        );
    }
}
