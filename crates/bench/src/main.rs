//! The command line's entry.

use std::process::ExitCode;

fn main() -> ExitCode {
    bench::run()
}
