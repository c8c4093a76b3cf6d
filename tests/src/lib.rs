//! Shared by the black-box tests: the world of a test, raw requests, and assertions on answers.
//!
//! Everything here panics with a clear message when it fails: the test has failed then.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    clippy::return_self_not_must_use,
    reason = "a failed set-up is a failed test"
)]

mod carrier;
mod catalogue;
mod clock;
mod code_flow;
mod collector;
mod dns;
mod documented;
mod expectations;
mod forms;
mod hooks;
mod logs;
mod machine_names;
mod mail_server;
mod markdown;
mod process;
mod receiver;
mod recording_proxy;
mod sandbox;
mod serving;
mod tools;
mod trade;
mod visitor;
mod wire;
mod world;

pub use carrier::{CarrierStub, StubAnswer, inpost_at};
pub use catalogue::{number_of, offer_body, offer_id, offer_line};
pub use clock::OpenTransaction;
pub use code_flow::{Asking, CALLBACK, Callback, Member, PASSWORD, Pair, challenge, refreshing};
pub use collector::{Collector, Exported};
pub use dns::NameServer;
pub use documented::{Document, Operation, answered, documented_returns, promised};
pub use expectations::{
    Expect, all_invalid, all_invalid_changes, assert_members, at_once, cases, count_of, entry, hex, ids,
    items, keyed, once_each, pages, sorted, whole,
};
pub use forms::{Form, encoded};
pub use hooks::{EVENTS, HOOK_SCOPES, Hook, Integration, TRADE_EVENTS, local_receivers, soon_again};
pub use logs::{assert_no_secret, events, logs_request, requests};
pub use machine_names::MachineNames;
pub use mail_server::{MailServer, mail_files, mailed_links, mails_to};
pub use markdown::{Fence, fences};
pub use process::{Finished, resident_kib, run, run_command, run_fed, run_unread, threads_of};
pub use receiver::{Receiver, Reply};
pub use recording_proxy::{Disturbance, Exchange, RecordingProxy};
pub use sandbox::Sandbox;
pub use serving::{free_port, listen};
pub use testkit::{Received, lock_waits, own_loopback, signature};
pub use tools::{on_path, skipped, there};
pub use trade::{Order, TRADE_SCOPES, Trader, eventually, line, order_body, parcel, until};
pub use visitor::{Page, Visitor, sign_in_form};
pub use wire::{Wire, request, request_with_body};
pub use world::{Application, PersonalToken, Seller, World, merged, set, text};
