//! A private PostgreSQL cluster, run with the machine's PostgreSQL binaries, that ends with its owner.
//!
//! A [`Cluster`] has one owner and one data folder; a second owner gets an error. The server stops when the owner stops it,
//! drops it or dies, also by `kill -9`. [`Cluster::start_supervised`] also restarts a server that dies. All calls block.
//!
//! The server listens only on a unix socket, in a folder that only its account can enter. PostgreSQL does not run as root, so
//! root runs it under the account `postgres`, else `nobody`.
//!
//! # How a server ends with its owner
//!
//! `guard.sh` runs the server in a separate process group, so that Ctrl-C does not reach it. It reads a pipe that the owner
//! holds: the kernel closes the pipe however the owner dies. Guard and server inherit a locked file, `life`: its lock is free
//! exactly when no process of an earlier server is alive, even if the guard was killed. If the lock is not free, the next
//! start stops those processes, after it has checked that they work in this data folder.
//!
//! # Files
//!
//! | in the folder | |
//! |---|---|
//! | `lock` | locked by the owner while it lives |
//! | `life` | locked by guard and server |
//! | `cluster/` | owned by the server's account: `data/`, `server.log`, `socket/`; or a link to `/var/tmp` if it cannot enter here |
//!
//! The socket is in `/tmp` if its path would be too long here.

mod binaries;
mod cluster;
mod error;
mod leftover;
mod paths;
mod server;

pub use binaries::Binaries;
pub use cluster::{Cluster, Options};
pub use error::Error;
pub use paths::{Connection, lock_folder};
