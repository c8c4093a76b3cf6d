//! The checks of a back-office request before its route: an operator's token, and nothing else. Also the 409 of a refusal,
//! for every operation.

use std::fmt::Display;
use std::time::Duration;

use accounts::OperatorTokenRecord;
use actix_web::HttpResponse;
use actix_web::http::Method;
use kernel::{KeySpace, SealPurpose};
use oauth::SecretHash;
use tokio::time::Instant;
use usecases::{ActingOperator, LockSet};
use web::authorization::bearer;
use web::deadline::Deadline;
use web::listener::{Listener, Ports};
use web::operation::Call;
use web::request::Request;
use web::{Code, Entry, Error, Problem, to_sentence};

use crate::BackOffice;

/// Who may call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Anybody who can reach the listener.
    Open,
    /// A caller with an operator token.
    Read,
    /// A caller with an operator token that is not read-only.
    Write,
}

/// Who calls.
#[derive(Debug, Clone, Copy)]
pub struct Operator {
    acting: ActingOperator,
    secret: SecretHash,
    read_only: bool,
}

impl Listener for BackOffice {
    const NAME: &'static str = "backoffice";
    /// 1 MiB (D98).
    const BODY_CAP: usize = 1024 * 1024;
    /// Only POST takes an `Idempotency-Key` (D46, D130).
    const KEYED: &'static [Method] = &[Method::POST];
    /// Longer than the store's limit for a transaction, so that the marketplace gets the outcome. Together with the
    /// look-up of a lost COMMIT it is shorter than the key's lease.
    const WRITE_TIMEOUT: Duration = Duration::from_secs(25);

    /// `None` for an open operation.
    type Caller = Option<Operator>;
    type Scope = Access;
    type ResponseContext = ();

    fn ports(&self) -> &Ports {
        &self.ports
    }

    fn response_context(&self) {}

    /// Reads the token's row at each request, so that a revoked token is refused immediately. Without a valid
    /// token all paths get the same answer.
    async fn admit(
        &self,
        request: &Request,
        access: Option<Access>,
        (): &mut (),
    ) -> Result<Option<Operator>, Error> {
        let Some(operators) = self.operators.as_ref().filter(|_| access != Some(Access::Open)) else {
            return Ok(None);
        };
        let secret = bearer(request.headers()).map(SecretHash::of);
        let secret = secret.ok_or_else(|| unauthorized(&self.ports.service.realm))?;
        let found = request.deadline().run(operators.operator(secret)).await??;
        let token = found.as_ref().map_or_else(Option::as_ref, Some);
        let id = token.map(|token| token.id);
        request.record_caller(|caller| caller.operator_token = id);
        let row = found.map_err(|dead| refused(&self.ports.service.realm, dead))?;
        Ok(Some(Operator {
            acting: ActingOperator::Token(row.id, request.client),
            secret,
            read_only: row.read_only,
        }))
    }

    fn permit(&self, caller: &Option<Operator>, access: Access) -> Result<(), Problem> {
        let realm = &self.ports.service.realm;
        match (access, caller) {
            (Access::Open, _) | (Access::Read, Some(_)) => Ok(()),
            (Access::Write, Some(operator)) if !operator.read_only => Ok(()),
            (Access::Write, Some(_)) => Err(Problem::insufficient_scope("write", realm)),
            (Access::Read | Access::Write, None) => Err(unauthorized(realm)),
        }
    }

    /// The operators share one key space (D46).
    fn key_space(&self, _: &Option<Operator>) -> KeySpace {
        KeySpace::Operator
    }

    fn with_shares(&self, _: &Option<Operator>, locks: LockSet) -> LockSet {
        locks.by_marketplace()
    }

    /// A registration may have a password, which could be guessed from a fingerprint without a secret.
    fn key_binding(&self, _: &Option<Operator>, path: &str) -> Option<Vec<u8>> {
        let secret = || self.sealer.derive(SealPurpose::Registration, b"").0;
        (path == "/sellers").then(|| secret().to_vec())
    }

    fn finish(&self, (): (), _: &mut HttpResponse) {}
}

fn unauthorized(realm: &str) -> Problem {
    Problem::unauthorized(realm, "operator token")
}

/// Refuses a caller whose token has ended while the call waited.
pub(crate) async fn check_again(call: &Call<BackOffice>) -> Result<(), Error> {
    let (Some(operators), Some(operator)) = (&call.state.operators, call.caller) else {
        return Ok(());
    };
    let deadline = Deadline::of_request(Instant::now());
    let found = deadline.run(operators.operator(operator.secret)).await??;
    found.map_err(|dead| refused(&call.state.ports.service.realm, dead))?;
    Ok(())
}

fn refused(realm: &str, dead: Option<OperatorTokenRecord>) -> Problem {
    let revoked = |dead: OperatorTokenRecord| dead.revoked_at.is_some();
    let reason = dead.map(|dead| if revoked(dead) { "revoked" } else { "expired" });
    unauthorized(realm).because(reason)
}

/// 409 with the reason of a refusal.
pub(crate) fn conflict(reason: &impl Display) -> Entry {
    Entry::new(Code::Conflict, to_sentence(reason))
}

/// The calling operator, for the audit log.
pub(crate) fn operator(call: &Call<BackOffice>) -> Result<ActingOperator, Problem> {
    let caller = call.caller.map(|operator| operator.acting);
    caller.ok_or_else(|| unauthorized(&call.state.ports.service.realm))
}
