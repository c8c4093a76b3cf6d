//! Load generator and side-by-side report: what the program does beside what PostgreSQL alone does, in one run on one
//! machine. `docs/PERFORMANCE.md` says how to run it and how to read it.
//!
//! - `cli`: the command line; `read`, `write`, `tokens`, `deliveries`, `arrivals`, `growth`, `storage`: the benches, each from the empty
//!   cluster to the report; `all`: those together; `goals`: what they are to reach; `soak`: mixed load for long; `profile`: one
//!   subject again and again; `compare`: two builds next to each other; `chosen`: the subjects of these two; `instructions`: what hot
//!   paths cost, in instructions; `operations`: what requests ask of PostgreSQL.
//! - What is measured stands on: `cluster` (a throw-away PostgreSQL), `program` and `server` (the real binary),
//!   `back_office` and `catalogue` (what it is filled with), `import` (filling, itself measured).
//! - What measures: `load` (HTTP), `pgbench`, `cpu`, `memory`, `metrics`, `statements`, `waits`, `counts`, `startup`, `connections`, `wal`, `tables`, `explained`. `measure`
//!   puts them together for one subject, `rounds` alternates subjects, `noise` says what disturbed them.
//! - What tells: `figures`, `report`, `plot`, `document`, `publish`, `machine`, `progress`.

mod all;
mod arrivals;
mod back_office;
mod catalogue;
mod chosen;
mod cli;
mod cluster;
mod compare;
mod connections;
mod counts;
mod cpu;
mod deliveries;
mod document;
mod explained;
mod figures;
mod goals;
mod growth;
mod http;
mod import;
mod instructions;
mod load;
mod machine;
mod maker;
mod measure;
mod memory;
mod metrics;
#[cfg(test)]
mod migrated;
mod noise;
mod operations;
mod options;
mod pgbench;
mod plot;
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
mod storage;
mod tables;
mod tap;
mod tokens;
mod waits;
mod wal;
mod walk;
mod write;

pub use cli::run;
pub use operations::{Operation, asked};
