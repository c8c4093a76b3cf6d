//! A cluster whose server is started again when it dies.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::{Cluster, Error, Options};

/// How long a dead server can go unnoticed.
const INTERVAL: Duration = Duration::from_millis(100);
/// The longest wait between two attempts to start it.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// A [`Cluster`] with a thread that starts its server again within a fraction of a second of its death, and keeps
/// trying. Connections are lost, the way to connect stays.
#[derive(Debug)]
pub struct Supervised {
    cluster: Arc<Cluster>,
    /// Dropped to end the thread.
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Supervised {
    /// Starts a cluster as [`Cluster::start`] does and watches over it.
    pub fn start(options: Options) -> Result<Self, Error> {
        let cluster = Arc::new(Cluster::start(options)?);
        let (end, ended) = mpsc::channel();
        let watched = Arc::clone(&cluster);
        let thread = thread::spawn(move || {
            let mut pause = INTERVAL;
            while ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                pause = look_after(&watched, pause);
            }
        });
        Ok(Self {
            cluster,
            end: Some(end),
            thread: Some(thread),
        })
    }

    /// Ends the watch, then the server as [`Cluster::stop`] does.
    pub fn stop(mut self) -> Result<(), Error> {
        self.end_watch();
        self.cluster.stop()
    }

    fn end_watch(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // It does not panic; were it to, there would be nothing left to end.
            let _ = thread.join();
        }
    }
}

impl Deref for Supervised {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        &self.cluster
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        self.end_watch();
    }
}

/// Starts the server again if need be; gives the pause until the next look.
fn look_after(cluster: &Cluster, pause: Duration) -> Duration {
    match cluster.restart_if_dead() {
        Ok(false) => INTERVAL,
        Ok(true) => {
            tracing::warn!("PostgreSQL had died and was started again");
            INTERVAL
        }
        Err(error) => {
            let cause: &dyn std::error::Error = &error;
            tracing::error!(error = cause, "PostgreSQL has died and does not start");
            (pause * 2).min(LONGEST_PAUSE)
        }
    }
}
