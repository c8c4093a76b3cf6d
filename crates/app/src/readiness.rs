//! Readiness of the service: the schema fits, the database is its own, the keys are right, and the process is
//! not stopping.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use adapter_postgres::{Database, Identity, SchemaState};
use adapter_sealing::KeyRing;
use kernel::{StoreError, error_chain};
use sd_notify::NotifyState;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use crate::command::{Exit, ExitError};
use crate::prometheus::{set_database, set_ready};
use crate::{process, sealing_keys};

/// The time limit for the database's answer: a probe is answered within 2 s.
const READY_TIMEOUT: Duration = Duration::from_millis(1_900);
/// The pause between two checks.
const INTERVAL: Duration = Duration::from_secs(1);
/// The pause between two new connections that show whether the database still lets the role in.
const LOGIN_INTERVAL: Duration = Duration::from_secs(10);

/// The state behind `/readyz`. Clones share it.
#[derive(Clone)]
pub(crate) struct Readiness {
    database: Database,
    sealer: Arc<KeyRing>,
    stopping: Arc<AtomicBool>,
    /// Set once the database has been found ready.
    reached: Arc<watch::Sender<bool>>,
    /// The result of the last check.
    ready: Arc<AtomicBool>,
    /// Set while the database refuses to let the role in. Open connections may still work, until each of them
    /// ends.
    locked_out: Arc<AtomicBool>,
}

/// Fails if this program cannot use the database's schema; with `migrates`, only if no migration can fix
/// that. For commands, which do not wait as `serve` does.
pub(crate) async fn require_schema(database: &Database, migrates: bool) -> anyhow::Result<()> {
    let schema = if migrates {
        database.schema_state().await?
    } else {
        seen_schema(database).await?
    };
    match (schema, migrates) {
        (SchemaState::Missing | SchemaState::Behind { .. } | SchemaState::OtherLayout { .. }, true)
        | (SchemaState::Ready, _) => Ok(()),
        (unfit, _) => Err(ExitError(Exit::Unavailable, unfit.to_string()).into()),
    }
}

/// The schema's state; `Forbidden` rather than `Missing` if the role only lacks the right to see it.
async fn seen_schema(database: &Database) -> Result<SchemaState, StoreError> {
    let schema = database.schema_state().await?;
    if schema != SchemaState::Missing {
        return Ok(schema);
    }
    let lacking = database.missing_grants().await?;
    Ok(lacking.map_or(schema, |statements| SchemaState::Forbidden { statements }))
}

/// Why a database whose rows were written in another one is not used.
pub(crate) fn not_adopted(identity: &Identity) -> String {
    let written_in = identity.written_in.as_deref().unwrap_or("an unknown one");
    format!(
        "this is the database {}, and its rows were written in {written_in}: it was restored from a dump, cloned, copied or upgraded. \
         Run `seller-api admin adopt-database`, with --restored or --upgraded",
        identity.here
    )
}

impl Readiness {
    /// `database` must be configured with the sealer.
    pub(crate) fn new(database: Database, sealer: Arc<KeyRing>) -> Self {
        Self {
            database,
            sealer,
            stopping: Arc::default(),
            reached: Arc::default(),
            ready: Arc::default(),
            locked_out: Arc::default(),
        }
    }

    /// Makes the service not ready from now on.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.ready.store(false, Ordering::Relaxed);
        set_ready(false);
    }

    /// Whether the last check found the process ready.
    pub(crate) fn ready_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.ready)
    }

    /// Waits until a check has found the database ready.
    pub(crate) async fn wait_until_ready(&self) {
        // The sender lives as long as this value, so the wait cannot fail.
        let _ = self.reached.subscribe().wait_for(|reached| *reached).await;
    }

    /// Checks periodically and logs changes of state. Ends if this program is too old for the
    /// schema that it found at its start, is configured for another layout, or would seal with a wrong key.
    pub(crate) async fn watch(&self) -> ExitError {
        loop {
            // A separate task: a panic is logged and stops nothing else. It is aborted when the caller stops
            // waiting.
            let watching = self.clone();
            match AbortOnDropHandle::new(tokio::spawn(async move { watching.check_until_unfit().await }))
                .await
            {
                Ok(unfit) => return unfit,
                Err(_) => sleep(INTERVAL).await,
            }
        }
    }

    async fn check_until_unfit(&self) -> ExitError {
        let (mut last, mut shown) = (None, None);
        let mut next_login = Instant::now() + LOGIN_INTERVAL;
        loop {
            if Instant::now() >= next_login {
                let was_locked_out = self.locked_out.load(Ordering::Relaxed);
                let is_locked_out = self
                    .database
                    .connector()
                    .refuses_role()
                    .await
                    .unwrap_or(was_locked_out);
                self.locked_out.store(is_locked_out, Ordering::Relaxed);
                next_login = Instant::now() + if is_locked_out { INTERVAL } else { LOGIN_INTERVAL };
            }
            let state = self.check_in_time().await;
            if shown.as_ref() != state.database() {
                set_database(shown.as_ref(), state.database());
                shown = state.database().cloned();
            }
            // Compares reasons, because the causes of an outage may differ from check to check.
            let reason = Some(state.not_ready());
            if !matches!(state, State::Unreachable { .. }) {
                self.database.connector().answers();
            }
            if last != reason {
                // Read after the check: meanwhile a probe may have found the process ready.
                let was_ready = *self.reached.borrow();
                match (&state, was_ready) {
                    (
                        State::Schema(
                            unfit @ (SchemaState::NeedsNewerBinary { .. } | SchemaState::OtherLayout { .. }),
                        ),
                        false,
                    ) => return ExitError(Exit::Unavailable, unfit.to_string()),
                    // A proxy may send it requests although it is not ready, and they would seal.
                    (State::MismatchedKey(reason), _) => return ExitError(Exit::Failed, reason.clone()),
                    _ => {}
                }
                self.ready.store(reason == Some(None), Ordering::Relaxed);
                state.report(&self.database);
                last = reason;
            }
            sleep(INTERVAL).await;
        }
    }

    async fn check_in_time(&self) -> State {
        match timeout(READY_TIMEOUT, self.check()).await {
            Ok(Ok(state)) => state,
            Ok(Err(error)) => self.unreachable(error_chain(&error)),
            Err(_) => self.unreachable("no answer".to_owned()),
        }
    }

    async fn check(&self) -> Result<State, StoreError> {
        if self.locked_out.load(Ordering::Relaxed) {
            return Ok(self.unreachable("new connections are refused".to_owned()));
        }
        let schema = seen_schema(&self.database).await?;
        if schema != SchemaState::Ready {
            return Ok(State::Schema(schema));
        }
        let identity = self.database.identity().await?;
        // A proxy may send requests to a process that is not ready.
        self.database.connector().set_foreign(!identity.is_own());
        let is_reached = *self.reached.borrow();
        // Row security may hide the row that tells where the rows were written.
        if (!is_reached || !identity.is_own())
            && let Some(statements) = self.database.missing_grants().await?
        {
            return Ok(State::Schema(SchemaState::Forbidden { statements }));
        }
        if !identity.is_own() {
            return Ok(State::NotAdopted(identity));
        }
        if !is_reached {
            // Values that another process seals later with keys that this process lacks are logged when they fail
            // to open.
            let compared = sealing_keys::compare(&self.database, &self.sealer).await?;
            if let Err(other) = compared.refuse_sealing(&self.sealer) {
                return Ok(State::MismatchedKey(other.to_string()));
            }
            // A probe may check at the same time.
            if !self.reached.send_replace(true) {
                compared.report();
            }
        }
        Ok(State::Ready(identity))
    }

    fn unreachable(&self, cause: String) -> State {
        State::Unreachable {
            cause,
            advice: self.database.connector().advice(),
        }
    }

    /// Checks for one probe. The database's identity, or why this process cannot do its work.
    pub(crate) async fn ready(self) -> Result<String, String> {
        if self.stopping.load(Ordering::Acquire) {
            return Err("stopping".to_owned());
        }
        match self.check_in_time().await {
            State::Ready(identity) => Ok(format!("{}/{}", identity.here, identity.timeline())),
            unfit => Err(unfit.not_ready().unwrap_or_default()),
        }
    }
}

/// The result of the last check of the database.
#[derive(Debug, PartialEq, Eq)]
enum State {
    Ready(Identity),
    Schema(SchemaState),
    NotAdopted(Identity),
    MismatchedKey(String),
    Unreachable {
        cause: String,
        advice: Option<&'static str>,
    },
}

impl State {
    /// Why the service is not ready; never contains the database's address.
    fn not_ready(&self) -> Option<String> {
        match self {
            Self::Ready(_) => None,
            Self::Schema(unfit) => Some(unfit.to_string()),
            Self::NotAdopted(identity) => Some(not_adopted(identity)),
            Self::MismatchedKey(reason) => Some(reason.clone()),
            Self::Unreachable { advice, .. } => {
                let advice = advice.map(|advice| format!(": {advice}")).unwrap_or_default();
                Some(format!("the database cannot be reached{advice}"))
            }
        }
    }

    /// The identity of the database, if it was read.
    const fn database(&self) -> Option<&Identity> {
        match self {
            Self::Ready(identity) | Self::NotAdopted(identity) => Some(identity),
            _ => None,
        }
    }

    /// Logs the state, and updates the metrics and systemd's status.
    fn report(&self, database: &Database) {
        let reason = self.not_ready();
        set_ready(reason.is_none());
        let status = reason.as_ref().map(|reason| format!("waiting: {reason}"));
        process::notify(&[NotifyState::Status(status.as_deref().unwrap_or("ready"))]);
        match (self, reason) {
            (_, None) => tracing::info!("ready"),
            (Self::Unreachable { cause, .. }, Some(reason)) => {
                tracing::warn!(
                    reason,
                    hosts = database.connector().hosts(),
                    cause,
                    "not ready: waiting"
                );
            }
            (_, Some(reason)) => tracing::warn!(reason, "not ready: waiting"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// States that only this test covers; process tests cover the others.
    #[test]
    fn reasons_name_what_to_change() {
        let locale = "pl_PL.UTF-8".to_owned();
        for (state, setting) in [
            (SchemaState::ReadOnly, "target_session_attrs"),
            (SchemaState::NotEnglish { locale }, "lc_messages"),
            (SchemaState::Behind { pending: 1 }, "lacks 1 migration:"),
            (SchemaState::Behind { pending: 2 }, "lacks 2 migrations:"),
        ] {
            let reason = state.to_string();
            assert!(reason.contains(setting), "{reason}");
        }
    }

    #[test]
    fn the_cause_of_an_outage_is_only_logged() {
        let cause = error_chain(&StoreError::Unavailable("connection to 10.0.0.7 refused".into()));
        assert!(cause.ends_with("connection to 10.0.0.7 refused"), "{cause}");
        let away = |advice| State::Unreachable {
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
