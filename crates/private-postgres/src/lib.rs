//! A PostgreSQL cluster of one's own from the machine's binaries, which ends with its owner.
//!
//! - [`Cluster`]: one owner and one data folder. A second owner is refused; the server stops when the owner stops it,
//!   drops it or dies, by `kill -9` too; the data stays, unless the owner wants it gone.
//!   It may be another one's standby, and be promoted.
//! - [`Supervised`]: a [`Cluster`] whose server is started again when it dies.
//! - [`SharedCluster`]: one throw-away server for all test processes of a run. The first one starts it; it ends, and its
//!   data with it, a while after the last one has gone.
//!
//! The server listens on a unix socket in a folder that only its account can enter, and on no port. As root it runs
//! under the account `postgres`, else `nobody`, since PostgreSQL refuses to run as root. All calls block.
//!
//! # How a server ends with its owner
//!
//! `guard.sh` runs the server, in a process group of its own so that Ctrl-C does not reach it. It waits for the end of a
//! pipe that the owner holds: the kernel closes it however the owner dies. Guard and server inherit a locked file
//! (`life`), so the lock is free exactly when nothing of an earlier server lives, whatever happened to the guard. Where
//! it is not free, the next start ends what is left, having checked that it works in this very data folder.
//!
//! # What lies where
//!
//! | in the folder | |
//! |---|---|
//! | `lock` | locked by the owner, for its lifetime |
//! | `life` | locked by guard and server |
//! | `cluster/` | belongs to the server's account: `data/`, `server.log`, `socket/` |
//! | `cluster.at` | names another place for `cluster/`, where the account cannot enter this one |
//! | `socket.at` | names another place for `socket/`, where its path is too long for a socket |

mod account;
mod binaries;
mod cluster;
mod connection;
mod error;
mod files;
mod guard;
mod initdb;
mod install_hint;
mod lease;
mod leftover;
mod lock;
mod memory;
mod note;
mod options;
mod place;
mod server;
mod shared;
mod supervised;

pub use binaries::{Binaries, MINIMUM_VERSION};
pub use cluster::Cluster;
pub use connection::Connection;
pub use error::Error;
pub use options::{Durability, Options};
pub use shared::{OnceError, SharedCluster, SharedOptions};
pub use supervised::Supervised;
