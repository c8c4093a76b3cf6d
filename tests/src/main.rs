//! The program under test.

fn main() -> std::process::ExitCode {
    seller_api::run()
}
