//! Certificates that are replaced while the program runs: on SIGHUP, and soon after their files have changed.
//!
//! A pair of files that cannot be used is told of once and changes nothing: what was served before is served on. Connections
//! that are open keep what they have agreed on.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use chrono::{DateTime, TimeDelta, Utc};
use kernel::Clock;
use rustls::{
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    time::{MissedTickBehavior, interval},
};
use tokio_util::task::AbortOnDropHandle;

use super::{
    Files,
    pair::{Pair, Read},
    validity::{Validity, expiry, validity},
};
use crate::causes;

/// How soon a change of the files is seen without a signal.
const LOOK_EVERY: Duration = Duration::from_mins(1);

/// How long before its end a certificate is warned of, once a day.
const WARNED_AHEAD: TimeDelta = TimeDelta::days(14);

/// The certificate that new connections are served with.
#[derive(Debug)]
pub(super) struct Served(RwLock<Arc<CertifiedKey>>);

impl Served {
    pub(super) fn new(Pair(pair): Pair) -> Self {
        Self(RwLock::new(pair))
    }

    pub(super) fn get(&self) -> Arc<CertifiedKey> {
        let served = self.0.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&served)
    }

    fn set(&self, Pair(pair): Pair) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = pair;
    }
}

impl ResolvesServerCert for Served {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.get())
    }
}

/// A listener's files, and what was made of them at the last look.
pub(super) struct Look {
    files: Files,
    served: Arc<Served>,
    clock: Arc<dyn Clock>,
    seen: u64,
    /// What the files hold cannot be served.
    refused: bool,
    told: Validity,
    /// When its coming end was last warned of.
    warned: Option<DateTime<Utc>>,
}

impl Look {
    /// Files that are served as they were `read`.
    pub(super) fn new(files: Files, read: &Read, served: Arc<Served>, clock: Arc<dyn Clock>) -> Self {
        let mut look = Self {
            files,
            served,
            clock,
            seen: print(read),
            refused: false,
            told: Validity::Fine,
            warned: None,
        };
        look.tell_validity();
        look.tell_expiry();
        look
    }

    /// Takes what the files hold now, if they changed or somebody asked for it. Returns whether it was taken.
    pub(super) async fn again(&mut self, asked: bool) -> bool {
        let read = self.files.read().await;
        let seen = print(&read);
        let mut taken = false;
        if asked || seen != self.seen {
            self.seen = seen;
            let section = self.files.section;
            match Pair::of(&self.files, &read) {
                Ok(pair) => {
                    self.served.set(pair);
                    self.refused = false;
                    self.told = Validity::Fine;
                    taken = true;
                    tracing::info!(
                        section,
                        "the certificate was read again and is served from now on"
                    );
                }
                Err(error) => {
                    self.refused = true;
                    let error = causes::told(&error);
                    tracing::error!(section, %error, "the new certificate cannot be used: the one before is served on");
                }
            }
        }
        if self.refused {
            metrics::counter!("tls_reload_failures_total", "listener" => self.files.listener()).increment(1);
        }
        self.tell_validity();
        self.tell_expiry();
        taken
    }

    /// Tells the meters when the certificate ends, and warns once a day where that is soon.
    fn tell_expiry(&mut self) {
        let Some(end) = expiry(&self.served.get().cert) else {
            return;
        };
        let since_1970 = Duration::from_secs(end.timestamp().try_into().unwrap_or_default());
        metrics::gauge!("tls_certificate_expiry_time_seconds", "listener" => self.files.listener())
            .set(since_1970.as_secs_f64());
        let now = self.clock.now();
        if is_to_be_warned_of(end, now, self.warned) {
            self.warned = Some(now);
            let (section, certificate) = (self.files.section, self.files.certificate.display());
            tracing::warn!(section, %certificate, %end, "the certificate expires soon: renew it");
        }
    }

    /// Warns of a certificate whose time has not come or is over, once.
    fn tell_validity(&mut self) {
        let validity = validity(&self.served.get().cert, self.clock.now());
        if validity == self.told {
            return;
        }
        self.told = validity;
        let (section, certificate) = (self.files.section, self.files.certificate.display());
        match validity {
            Validity::Fine => {}
            Validity::Early => {
                tracing::warn!(section, %certificate, "the certificate is not valid yet: clients refuse it");
            }
            Validity::Over => {
                tracing::warn!(section, %certificate, "the certificate has expired: clients refuse it");
            }
        }
    }
}

/// Whether a certificate's end is near, and was not warned of within a day.
pub(super) fn is_to_be_warned_of(
    end: DateTime<Utc>,
    now: DateTime<Utc>,
    warned: Option<DateTime<Utc>>,
) -> bool {
    let is_near = now < end && end - now <= WARNED_AHEAD;
    is_near && warned.is_none_or(|last| now - last >= TimeDelta::days(1))
}

/// Tells contents of files apart; they are compared with earlier ones of the same run alone.
fn print(read: &Read) -> u64 {
    let mut hasher = DefaultHasher::new();
    match read {
        Ok(contents) => contents.hash(&mut hasher),
        Err((key, _, error)) => (key, error.to_string()).hash(&mut hasher),
    }
    hasher.finish()
}

/// Looks after certificates for as long as it is kept.
pub(crate) struct Reloading {
    _task: AbortOnDropHandle<()>,
}

impl Reloading {
    /// From now on SIGHUP has the files read again; it would end the process otherwise. Needs a runtime.
    pub(super) fn start(looks: Vec<Look>) -> io::Result<Self> {
        let asking = signal(SignalKind::hangup())?;
        Ok(Self {
            _task: AbortOnDropHandle::new(tokio::spawn(keep_looking(looks, asking))),
        })
    }
}

async fn keep_looking(mut looks: Vec<Look>, mut asking: Signal) {
    let mut due = interval(LOOK_EVERY);
    due.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let asked = tokio::select! {
            _ = asking.recv() => true,
            _ = due.tick() => false,
        };
        for look in &mut looks {
            look.again(asked).await;
        }
    }
}
