//! A PostgreSQL cluster of one's own from the machine's binaries, which ends with its owner.
//!
//! A [`Cluster`] has one owner and one data folder. A second owner is refused. The server stops when the owner stops it,
//! drops it or dies, by `kill -9` too. [`Cluster::start_supervised`] also
//! restarts a server that dies. All calls block.
//!
//! The server listens on a unix socket in a folder that only its account can enter, and on no port. PostgreSQL refuses to run as
//! root, so root runs it under the account `postgres`, else `nobody`.
//!
//! # How a server ends with its owner
//!
//! `guard.sh` runs the server, in a process group of its own so that Ctrl-C does not reach it. It reads a pipe that the
//! owner holds: the kernel closes it however the owner dies. Guard and server inherit a locked file, `life`, so the lock is
//! free exactly when nothing of an earlier server lives, even if the guard was killed. If it is not free, the next start
//! ends what is left, after a check that it works in this data folder.
//!
//! # Files
//!
//! | in the folder | |
//! |---|---|
//! | `lock` | locked by the owner, for its lifetime |
//! | `life` | locked by guard and server |
//! | `cluster/` | belongs to the server's account: `data/`, `server.log`, `socket/`; a link to a folder in `/var/tmp` if the account cannot enter this one |
//!
//! The socket lies in `/tmp` if its path would be too long.

mod binaries;
mod cluster;
mod error;
mod leftover;
mod place;
mod server;

pub use binaries::{Binaries, MINIMUM_VERSION};
pub use cluster::{Cluster, Options};
pub use error::Error;
pub use place::Connection;
