//! The checks of a `/v1` request before its route: `User-Agent`, token and rate limit. Counts the calls of
//! applications.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use accounts::{UsageCount, UsageKey};
use actix_web::HttpResponse;
use actix_web::http::Method;
use actix_web::http::header::{
    DATE, HeaderMap, HeaderName, HeaderValue, HttpDate, TryIntoHeaderValue, USER_AGENT,
};
use chrono::{SubsecRound as _, TimeDelta};
use kernel::{KeySpace, SellerId, StoreError};
use oauth::{
    Admission, BearerToken, ClientId, DeadToken, Limiter, Principal, Quota, Scope, Subject, TokenKey,
};
use parking_lot::Mutex;
use usecases::LockSet;
use web::authorization::bearer;
use web::deadline::Deadline;
use web::head::only;
use web::listener::{Listener, Ports};
use web::meters::admits;
use web::request::Request;
use web::response::WINDOW_SECONDS;
use web::{Code, Error, Problem};

use crate::{Public, events};

/// Paths whose responses contain a secret: a key of one application never replays a response to another
/// (D47).
const KEYED_BY_APPLICATION: &str = "/v1/webhooks";

const MAX_APP_NAME_LENGTH: usize = 64;

const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// Facts from a request's checks; kept when one of them refuses it.
pub struct ResponseContext {
    quota: Quota,
    /// The seller and the application that the request counts for.
    counted: Option<(SellerId, ClientId)>,
}

impl Listener for Public {
    const NAME: &'static str = "api";
    /// 64 KiB (D7).
    const BODY_CAP: usize = 64 * 1024;
    const KEYED: &'static [Method] = &[Method::POST, Method::PATCH, Method::DELETE];
    const WRITE_TIMEOUT: Duration = Deadline::REQUEST_TIMEOUT;

    type Caller = Principal;
    /// Any of these scopes suffices, and a refusal names the first. Empty: none is required.
    type Scope = &'static [Scope];
    type ResponseContext = ResponseContext;

    fn ports(&self) -> &Ports {
        &self.ports
    }

    /// A request that is not counted shows the limit of a new application, so that it reveals nothing about
    /// existing ones (D2).
    fn response_context(&self) -> ResponseContext {
        let now = self.settings.clock.now();
        let window = i64::from(WINDOW_SECONDS);
        let left = window.saturating_sub(now.timestamp().rem_euclid(window));
        ResponseContext {
            quota: Quota {
                limit: self.ports.service.default_rate_limit.get(),
                place: 0,
                resets_at: now.trunc_subsecs(0) + TimeDelta::seconds(left),
                counted_at: now.trunc_subsecs(0),
            },
            counted: None,
        }
    }

    async fn admit(
        &self,
        request: &Request,
        _: Option<Self::Scope>,
        context: &mut ResponseContext,
    ) -> Result<Principal, Error> {
        check_user_agent(request.headers())?;

        let unauthorized = || Problem::unauthorized(&self.ports.service.realm, "access token");
        let token = bearer(request.headers()).and_then(BearerToken::presented);
        let token = token.ok_or_else(unauthorized)?;
        let reads = matches!(*request.method(), Method::GET | Method::HEAD);
        let (limit, admission) = if reads && self.ports.is_finished() && request.path() == events::PATH {
            let admission = self.admit_to_journal(token.key());
            ("events", request.deadline().run(admission).await?)
        } else {
            let admission = self.gate.admit(token.key());
            ("api", request.deadline().run(admission).await?)
        };
        let admission = admission.map_err(Error::before_execution)?;
        let record = |client_id, seller| {
            request.record_caller(|caller| {
                caller.client_id = Some(client_id);
                caller.seller = Some(seller);
                caller.token = Some(token.key().family);
            });
        };
        let Admission { principal, quota } = admission.map_err(|dead| {
            let end = dead.map(|dead| {
                record(dead.client_id, dead.seller);
                dead.end.as_str()
            });
            unauthorized().because(end)
        })?;

        context.quota = quota;
        context.counted = Some((principal.seller, principal.client_id));
        record(principal.client_id, principal.seller);
        if !admits(limit, &quota) {
            return Err(Problem::rate_limited(quota.retry_after()).into());
        }
        Ok(principal)
    }

    fn permit(&self, principal: &Principal, scopes: &'static [Scope]) -> Result<(), Problem> {
        let realm = &self.ports.service.realm;
        let has_any = scopes.iter().any(|scope| principal.may(*scope));
        match scopes.first() {
            Some(first) if !has_any => Err(Problem::insufficient_scope(first.as_str(), realm)),
            _ => Ok(()),
        }
    }

    fn key_space(&self, principal: &Principal) -> KeySpace {
        KeySpace::Seller(principal.seller)
    }

    fn with_shares(&self, principal: &Principal, locks: LockSet) -> LockSet {
        locks.by_application(principal.seller, principal.client_id)
    }

    fn key_binding(&self, principal: &Principal, path: &str) -> Option<Vec<u8>> {
        path.starts_with(KEYED_BY_APPLICATION)
            .then(|| principal.client_id.to_string().into_bytes())
    }

    fn finish(&self, context: ResponseContext, response: &mut HttpResponse) {
        if let Some((seller, client_id)) = context.counted {
            let status = response.status().as_u16();
            let key = UsageKey {
                seller,
                client_id,
                status,
            };
            self.usage.add([UsageCount { key, calls: 1 }]);
            // Clients compare it with `updated_at`, which has the database's clock (D127).
            let counted_at = SystemTime::from(context.quota.counted_at);
            if let Ok(date) = HttpDate::from(counted_at).try_into_value() {
                response.headers_mut().insert(DATE, date);
            }
        }
        write_quota(&context.quota, response.headers_mut());
    }
}

impl Public {
    /// Looks up a token, and counts the request for the journal alone.
    async fn admit_to_journal(
        &self,
        token: TokenKey,
    ) -> Result<Result<Admission, Option<DeadToken>>, StoreError> {
        let principal = match self.gate.look_up(token).await? {
            Ok(principal) => principal,
            Err(dead) => return Ok(Err(dead)),
        };
        let subject = Subject::of_seller(principal.seller, principal.client_id.uuid());
        let count = self.rates.count(Limiter::Events, subject).await?;
        let quota = count.against(events::LIMIT);
        Ok(Ok(Admission { principal, quota }))
    }
}

/// Requires exactly one valid `User-Agent`: `<AppName>/<Version>` (contract: Common rules). A repeated header
/// counts as missing (D110).
pub(crate) fn check_user_agent(headers: &HeaderMap) -> Result<(), Problem> {
    match only(headers, USER_AGENT) {
        Some(sent) if starts_with_name_and_version(sent.as_bytes()) => Ok(()),
        _ => Err(Problem::new(
            Code::MissingUserAgent,
            "Send one User-Agent header such as MyShopSync/1.4 (+https://example.com/docs).",
        )),
    }
}

/// `^[A-Za-z0-9][A-Za-z0-9._-]{0,63}/[A-Za-z0-9][A-Za-z0-9._-]{0,31}`: no end anchor, so one valid character
/// of a version is enough (D110).
fn starts_with_name_and_version(text: &[u8]) -> bool {
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
    let first = text.first().is_some_and(u8::is_ascii_alphanumeric);
    let name = text.iter().take_while(|byte| inner(byte)).count();
    let version = match text.get(name..) {
        Some([b'/', version, ..]) => version.is_ascii_alphanumeric(),
        _ => false,
    };
    first && name <= MAX_APP_NAME_LENGTH && version
}

/// Writes the rate-limit headers of every `/v1` response: the contract's three (Common rules), and the two of
/// draft-ietf-httpapi-ratelimit-headers-11 that client libraries know, with the same values for the policy
/// `default`, also of the journal. The time until the reset equals the `Retry-After` of a spent limit, as §6 of the
/// draft requires.
fn write_quota(quota: &Quota, headers: &mut HeaderMap) {
    let (limit, remaining, resets_in) = (quota.limit, quota.remaining(), quota.retry_after());
    headers.insert(LIMIT, HeaderValue::from(limit));
    headers.insert(REMAINING, HeaderValue::from(remaining));
    headers.insert(RESET, HeaderValue::from(quota.resets_at.timestamp()));
    let current = format!("\"default\";r={remaining};t={resets_in}");
    let policy = format!("\"default\";q={limit};w={WINDOW_SECONDS}");
    for (name, value) in [(RATE_LIMIT, current), (RATE_LIMIT_POLICY, policy)] {
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(name, value);
        }
    }
}

/// Calls by caller and status, in memory until a worker takes and stores them. Clones share the counts.
#[derive(Clone, Debug, Default)]
pub struct UsageMeter(Arc<Mutex<HashMap<UsageKey, u32>>>);

impl UsageMeter {
    /// Adds new counts, or those that could not be stored.
    pub fn add(&self, counts: impl IntoIterator<Item = UsageCount>) {
        let mut sums = self.0.lock();
        for UsageCount { key, calls } in counts {
            let sum = sums.entry(key).or_default();
            *sum = sum.saturating_add(calls);
        }
    }

    /// Removes and returns the counts.
    pub fn take(&self) -> Vec<UsageCount> {
        let counts = std::mem::take(&mut *self.0.lock());
        let counts = counts.into_iter().map(|(key, calls)| UsageCount { key, calls });
        counts.collect()
    }
}
