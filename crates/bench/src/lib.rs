//! Load generator and side-by-side report: what the program does beside what PostgreSQL alone does, in one run on one
//! machine. `docs/PERFORMANCE.md` says how to run it and how to read it.
//!
//! - `cli`: the command line; `read`, `write`, `tokens`, `deliveries`: the benches, each from the empty cluster to the report;
//!   `soak`: mixed load for long; `profile`: one subject again and again.
//! - What is measured stands on: `cluster` (a throw-away PostgreSQL), `program` and `server` (the real binary),
//!   `back_office` and `catalogue` (what it is filled with), `import` (filling, itself measured).
//! - What measures: `load` (HTTP), `pgbench`, `cpu`, `memory`, `statements`, `counts`, `startup`, `connections`. `measure`
//!   puts them together for one subject, `rounds` alternates subjects, `noise` says what disturbed them.
//! - What tells: `figures`, `report`, `document`, `machine`, `progress`.

mod back_office;
mod catalogue;
mod cli;
mod cluster;
mod connections;
mod counts;
mod cpu;
mod deliveries;
mod document;
mod figures;
mod http;
mod import;
mod load;
mod machine;
mod maker;
mod measure;
mod memory;
#[cfg(test)]
mod migrated;
mod noise;
mod options;
mod pgbench;
mod profile;
mod program;
mod progress;
mod publish;
mod read;
mod report;
mod requests;
mod rounds;
mod server;
mod soak;
mod stand;
mod startup;
mod statements;
mod tap;
mod tokens;
mod walk;
mod write;

pub use cli::run;
