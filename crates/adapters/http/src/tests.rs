//! Tests of the listener over mocked ports: the order of its checks, its documented refusals, and lost COMMITs. `tests/contract` covers
//! everything else.

pub(crate) mod fakes;
mod fixture;
mod grants;
mod logs;

mod api_order;
mod documented_refusals;
mod exchange_order;
mod lost_commits;
