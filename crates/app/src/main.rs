//! The program.

use std::process::ExitCode;

fn main() -> ExitCode {
    seller_api::run()
}
