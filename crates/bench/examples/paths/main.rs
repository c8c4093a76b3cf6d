//! Hot paths in one process, without sockets and without a database, for counting their instructions:
//! `paths <path> <times>`. `bench instructions` runs it under valgrind (`docs/PERFORMANCE.md`).

mod listener;
mod pieces;
mod ports;

use std::process::ExitCode;

use anyhow::{Context as _, bail};

/// As the product allocates.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (path, times) = (arguments.next(), arguments.next());
    match run(path.as_deref(), times.as_deref()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ =
                std::io::Write::write_all(&mut std::io::stderr(), format!("paths: {error:#}\n").as_bytes());
            ExitCode::FAILURE
        }
    }
}

fn run(path: Option<&str>, times: Option<&str>) -> anyhow::Result<()> {
    let path = path.context("a path has to be named")?;
    let times = times.unwrap_or("1").parse()?;
    match path {
        "offer" => listener::reads(&format!("/v1/offers/{}", ports::OFFER), times),
        "page" => listener::reads("/v1/offers?limit=50", times),
        "deep-page" => listener::deep_pages(times),
        "patch" => listener::patches(times),
        "unknown-route" => listener::misses(times),
        "token-key" => pieces::token_keys(times),
        "json" => pieces::json(times),
        "signature" => {
            pieces::signatures(times);
            Ok(())
        }
        "seal" => pieces::seals(times),
        other => bail!("there is no path {other}"),
    }
}
