//! The listener over mocks of the ports: the order of its checks, its documented refusals, and lost COMMITs. All else is held
//! by `tests/contract`.

pub(crate) mod fakes;
mod fixture;
mod grants;
mod logs;

mod api_order;
mod documented_refusals;
mod exchange_order;
mod lost_commits;
