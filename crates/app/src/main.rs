//! The entry point of the program.

use std::process::ExitCode;

fn main() -> ExitCode {
    seller_api::run()
}
