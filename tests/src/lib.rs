//! What the black-box tests share: a world to test in, requests byte for byte, expectations about answers.
//!
//! Everything here panics with a clear message where it cannot go on: that is a failed test.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    clippy::return_self_not_must_use,
    reason = "a failed set-up is a failed test"
)]

mod catalogue;
mod expectations;
mod logs;
mod process;
mod sandbox;
mod wire;
mod world;

pub use catalogue::{number_of, offer_body, offer_id, offer_line};
pub use expectations::{Expect, entry, whole};
pub use logs::{assert_no_secret, events, requests, tells_of};
pub use process::{Finished, resident_kib, run};
pub use sandbox::Sandbox;
pub use wire::{Wire, request, request_with_body};
pub use world::{Application, PersonalToken, Seller, World, merged};
