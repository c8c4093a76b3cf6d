//! Whether the service can do its work: the schema is there, the keys are the right ones, and nobody has asked it to stop.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use adapter_backoffice::{Health, NotReady};
use adapter_postgres::{Database, SchemaState};
use adapter_sealing::KeyRing;
use async_trait::async_trait;
use kernel::StoreError;
use tokio::{
    sync::{OnceCell, watch},
    time::{sleep, timeout},
};
use tokio_util::task::AbortOnDropHandle;

use crate::{error_chain, meters::note_readiness, process, sealing_keys};

/// Longest wait for the database's answer: whoever asks is to be answered within 2 s.
const PATIENCE: Duration = Duration::from_millis(1_900);
/// How much of that comparing the keys may take. It is a handful of short statements, and done once.
const PATIENCE_WITH_KEYS: Duration = Duration::from_millis(900);
/// Pause between two looks at the schema.
const INTERVAL: Duration = Duration::from_secs(1);

/// What `/readyz` answers by. Clones share the state.
#[derive(Clone)]
pub(crate) struct Readiness {
    database: Database,
    sealer: Arc<KeyRing>,
    /// Set once the keys were found to be the right ones.
    compared: Arc<OnceCell<()>>,
    stopping: Arc<AtomicBool>,
    reached: Arc<watch::Sender<bool>>,
}

/// What to do about a pooler that a program with prepared statements cannot work through.
pub(crate) const STATEMENTS_FORGOTTEN: &str = "the pooler before the database forgets prepared statements: set \
    `max_prepared_statements` (1000, say) in PgBouncer 1.21 or newer, or let it pool sessions";

/// What to do about a server that a program which writes cannot work with.
pub(crate) const READ_ONLY: &str = "the database takes no writes, as a standby does: let its URL lead to the primary, or name all \
    hosts in it with `target_session_attrs=read-write`";

/// What to do about a role that may not read the tables.
pub(crate) const FORBIDDEN: &str = "the role may not read the database's tables: migrate as the role that serves \
    (`database.direct_url` and `database.url` name the same one), or grant it the tables";

/// What to do about a database that cannot hold every name.
pub(crate) fn not_unicode(encoding: &str) -> String {
    format!(
        "the database has the encoding {encoding} and not UTF8, so that it cannot hold every name: create one with TEMPLATE template0 \
         ENCODING 'UTF8'"
    )
}

/// What to do about a server that speaks another language.
pub(crate) fn not_english(locale: &str) -> String {
    format!(
        "the server's messages are in {locale:?} and have to be in English, since some failures are told apart by them: set lc_messages \
         to 'C' for the role (ALTER ROLE … SET lc_messages = 'C'), then restart this process and any pooler"
    )
}

/// The schema can only be used by a newer version of the program.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the database's schema needs seller-api {oldest} or newer, and this is {}: deploy the newer version",
    env!("CARGO_PKG_VERSION")
)]
pub(crate) struct TooOld {
    pub(crate) oldest: String,
}

impl Readiness {
    /// The database has to be one with the sealer.
    pub(crate) fn new(database: Database, sealer: Arc<KeyRing>) -> Self {
        Self {
            database,
            sealer,
            compared: Arc::default(),
            stopping: Arc::default(),
            reached: Arc::default(),
        }
    }

    /// From now on the service is not ready.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        note_readiness(false);
    }

    /// Waits until whoever watches has found the schema fit for the first time.
    pub(crate) async fn reached(&self) {
        // The sender lives as long as this value, so the wait ends only so.
        let _ = self.reached.subscribe().wait_for(|reached| *reached).await;
    }

    /// Looks at the schema again and again, and logs what has changed. Ends where this program is too old for the schema
    /// that it found at its start.
    pub(crate) async fn watch(&self) -> TooOld {
        loop {
            // A task of its own: a panic is logged, and takes nothing else along. It ends with whoever waits for it.
            let watching = self.clone();
            match AbortOnDropHandle::new(tokio::spawn(async move { watching.watch_once().await })).await {
                Ok(too_old) => return too_old,
                Err(_) => sleep(INTERVAL).await,
            }
        }
    }

    async fn watch_once(&self) -> TooOld {
        let (mut last, mut was_ready) = (None, false);
        loop {
            let state = self.look().await;
            // By its reason: the causes of an outage may differ from look to look.
            let reason = Some(state.not_ready());
            if last != reason {
                if let (State::TooOld { oldest }, false) = (&state, was_ready) {
                    return TooOld {
                        oldest: oldest.clone(),
                    };
                }
                state.tell();
                if state == State::Ready {
                    was_ready = true;
                    self.reached.send_replace(true);
                }
                last = reason;
            }
            sleep(INTERVAL).await;
        }
    }

    async fn look(&self) -> State {
        match timeout(PATIENCE, self.look_at_leisure()).await {
            Ok(Ok(state)) => state,
            Ok(Err(error)) => self.away(error_chain::describe(&error)),
            Err(_) => self.away("no answer".to_owned()),
        }
    }

    async fn look_at_leisure(&self) -> Result<State, StoreError> {
        let state = State::from(self.database.schema_state().await?);
        if state != State::Ready {
            return Ok(state);
        }
        let compared = self.compared.get_or_try_init(|| self.compare_keys()).await;
        Ok(compared.err().unwrap_or(state))
    }

    /// Holds the keys against a few of the values that are stored, at the start and never again: what others seal later, with
    /// keys that this process lacks, is told where it does not open.
    async fn compare_keys(&self) -> Result<(), State> {
        let values = self.database.sealed_values();
        let Ok(compared) = timeout(PATIENCE_WITH_KEYS, sealing_keys::compare(&values, &self.sealer)).await
        else {
            tracing::warn!(
                "the sealing keys could not be compared in time: ask `seller-api admin keys status`"
            );
            return Ok(());
        };
        let compared = compared.map_err(|error| self.away(error_chain::describe(&error)))?;
        let refused = compared.refuse_sealing(&self.sealer);
        refused.map_err(|other| State::OtherKey(other.to_string()))?;
        compared.tell();
        Ok(())
    }

    fn away(&self, cause: String) -> State {
        State::Away {
            cause,
            advice: self.database.advice(),
        }
    }
}

#[async_trait]
impl Health for Readiness {
    async fn ready(&self) -> Result<(), NotReady> {
        if self.stopping.load(Ordering::Acquire) {
            return Err(NotReady("stopping".to_owned()));
        }
        self.look()
            .await
            .not_ready()
            .map_or(Ok(()), |reason| Err(NotReady(reason)))
    }
}

/// What the last look has found.
#[derive(Debug, PartialEq, Eq)]
enum State {
    Ready,
    StatementsForgotten,
    ReadOnly,
    NotUnicode {
        encoding: String,
    },
    NotEnglish {
        locale: String,
    },
    Forbidden,
    Missing,
    Behind {
        pending: usize,
    },
    TooOld {
        oldest: String,
    },
    OtherKey(String),
    Away {
        cause: String,
        advice: Option<&'static str>,
    },
}

impl From<SchemaState> for State {
    fn from(state: SchemaState) -> Self {
        match state {
            SchemaState::Ready => Self::Ready,
            SchemaState::StatementsForgotten => Self::StatementsForgotten,
            SchemaState::ReadOnly => Self::ReadOnly,
            SchemaState::NotUnicode { encoding } => Self::NotUnicode { encoding },
            SchemaState::NotEnglish { locale } => Self::NotEnglish { locale },
            SchemaState::Forbidden => Self::Forbidden,
            SchemaState::Missing => Self::Missing,
            SchemaState::Behind { pending } => Self::Behind { pending },
            SchemaState::NeedsNewerBinary { oldest } => Self::TooOld { oldest },
        }
    }
}

impl State {
    /// Why the service is not ready; never the database's address.
    fn not_ready(&self) -> Option<String> {
        match self {
            Self::Ready => None,
            Self::StatementsForgotten => Some(STATEMENTS_FORGOTTEN.to_owned()),
            Self::ReadOnly => Some(READ_ONLY.to_owned()),
            Self::NotUnicode { encoding } => Some(not_unicode(encoding)),
            Self::NotEnglish { locale } => Some(not_english(locale)),
            Self::Forbidden => Some(FORBIDDEN.to_owned()),
            Self::Missing => Some("the database has no schema yet: run `seller-api migrate`".to_owned()),
            Self::Behind { pending } => Some(format!(
                "the database lacks {pending} migrations: run `seller-api migrate`"
            )),
            Self::TooOld { oldest } => Some(format!(
                "the database's schema needs seller-api {oldest} or newer"
            )),
            Self::OtherKey(why) => Some(why.clone()),
            Self::Away { advice: None, .. } => Some("the database cannot be reached".to_owned()),
            Self::Away {
                advice: Some(advice), ..
            } => Some(format!("the database cannot be reached: {advice}")),
        }
    }

    /// Tells the log, the meters and the service manager.
    fn tell(&self) {
        let reason = self.not_ready();
        note_readiness(reason.is_none());
        let status = reason.as_ref().map(|reason| format!("waiting: {reason}"));
        process::notify_status(status.as_deref().unwrap_or("ready"));
        match (self, reason) {
            (_, None) => tracing::info!("ready"),
            (Self::Away { cause, .. }, Some(reason)) => tracing::warn!(reason, cause, "not ready: waiting"),
            (_, Some(reason)) => tracing::warn!(reason, "not ready: waiting"),
        }
    }
}

#[cfg(test)]
mod tests {
    use adapter_sealing::SystemRandomness;

    use super::*;

    #[tokio::test]
    async fn nobody_watches_on_once_nobody_waits() {
        let settings = crate::config::DatabaseConfig::default()
            .settings("postgres://nobody@127.0.0.1:1/nothing", std::num::NonZeroU32::MIN);
        let keys = [KeyRing::generate(&SystemRandomness::new()).into()];
        let ring = Arc::new(KeyRing::parse(&keys).unwrap());
        let readiness = Readiness::new(Database::new(settings).unwrap(), ring);
        assert!(
            timeout(Duration::from_millis(100), readiness.watch())
                .await
                .is_err()
        );
        let watched = async {
            while Arc::strong_count(&readiness.stopping) > 1 {
                tokio::task::yield_now().await;
            }
        };
        assert!(timeout(Duration::from_secs(5), watched).await.is_ok());
    }

    #[test]
    fn what_is_not_ready_says_what_to_do() {
        assert_eq!(State::from(SchemaState::Ready).not_ready(), None);
        let behind = State::from(SchemaState::Behind { pending: 2 })
            .not_ready()
            .unwrap();
        assert!(
            behind.contains("2 migrations") && behind.contains("seller-api migrate"),
            "{behind}"
        );
        let forgotten = State::from(SchemaState::StatementsForgotten);
        let forgotten = forgotten.not_ready().unwrap();
        assert!(forgotten.contains("`max_prepared_statements`"), "{forgotten}");
        let read_only = State::from(SchemaState::ReadOnly).not_ready().unwrap();
        assert!(read_only.contains("target_session_attrs"), "{read_only}");
        let locale = "pl_PL.UTF-8".to_owned();
        let polish = State::from(SchemaState::NotEnglish { locale })
            .not_ready()
            .unwrap();
        assert!(
            polish.contains("pl_PL.UTF-8") && polish.contains("lc_messages"),
            "{polish}"
        );
        assert!(State::Missing.not_ready().unwrap().contains("seller-api migrate"));
    }

    #[test]
    fn the_causes_of_an_outage_are_for_the_log_alone() {
        let cause = error_chain::describe(&StoreError::Unavailable("connection to 10.0.0.7 refused".into()));
        assert!(cause.ends_with("connection to 10.0.0.7 refused"), "{cause}");
        let away = |advice| State::Away {
            cause: cause.clone(),
            advice,
        };
        assert!(!away(None).not_ready().unwrap().contains("10.0.0.7"));
        let advised = away(Some("renew it")).not_ready().unwrap();
        assert!(
            advised.ends_with(": renew it") && !advised.contains("10.0.0.7"),
            "{advised}"
        );
    }
}
