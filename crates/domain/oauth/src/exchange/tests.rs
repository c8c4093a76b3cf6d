//! The state machine of a family, tested with a model: any sequence of exchanges, refreshes and everything
//! that ends a family.

use chrono::TimeDelta;
use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::ApplicationStatus::{Active, Pending, Suspended};
use crate::FamilyStatus;

fn start() -> DateTime<Utc> {
    DateTime::from_timestamp(1_700_000_000, 0).unwrap()
}

fn client(n: u128) -> ClientId {
    Uuid::from_u128(n).into()
}

fn scopes(bits: i32) -> ScopeSet {
    ScopeSet::from_bits(bits).unwrap()
}

fn family(consented: ScopeSet) -> Family {
    Family {
        id: Uuid::from_u128(1).into(),
        seller: Uuid::from_u128(2).into(),
        client_id: client(3),
        scopes: consented,
        status: FamilyStatus {
            revoked: false,
            disconnected: false,
            closed: false,
            application: Some((Active, ScopeSet::all())),
        },
    }
}

fn code() -> Code {
    let challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
    Code {
        redirect_uri: "https://app.example/cb".to_owned(),
        challenge: CodeChallenge::new(challenge.to_owned()).unwrap(),
        expires_at: start() + TimeDelta::minutes(10),
        used_at: None,
    }
}

fn presented() -> CodeExchange {
    let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
    CodeExchange {
        client_id: client(3),
        redirect_uri: "https://app.example/cb".to_owned(),
        verifier: CodeVerifier::new(verifier.to_owned()).unwrap(),
    }
}

#[test]
fn verdicts_on_codes() {
    let (family, code, good) = (family(scopes(0b111)), code(), presented());
    let mut used = code.clone();
    used.used_at = Some(start());
    let late = start() + TimeDelta::minutes(10);
    for (code, now, verdict) in [
        (&code, start(), Ok(Verdict::Issue(scopes(0b111)))),
        (&used, start(), Ok(Verdict::RevokeFamily)),
        (&used, late, Ok(Verdict::RevokeFamily)),
        (&code, late, Err(GrantRefusal::Expired)),
    ] {
        assert_eq!(code.judge(&family, &good, now), verdict);
    }
    // What does not match is refused, even if the code was used: it revokes nothing.
    let [mut uri, mut verifier, mut stranger] = [good.clone(), good.clone(), good];
    uri.redirect_uri.push('/');
    verifier.verifier = CodeVerifier::new("x".repeat(43)).unwrap();
    stranger.client_id = client(4);
    for (wrong, refusal) in [
        (uri, GrantRefusal::RedirectMismatch),
        (verifier, GrantRefusal::VerifierMismatch),
        (stranger, GrantRefusal::Unknown),
    ] {
        for code in [&code, &used] {
            let verdict = code.judge(&family, &wrong, start());
            assert_eq!(verdict, Err(refusal));
        }
    }
    let key = TokenKey {
        family: family.id,
        hash: SecretHash::of("x"),
    };
    let other = Presented::RefreshToken(key, client(3));
    let verdict = other.judge(&family, &StoredCredential::Code(code), start());
    assert_eq!(verdict, Err(GrantRefusal::Unknown));
}

#[test]
fn verdicts_on_refresh_tokens() {
    let end = start() + TimeDelta::days(90);
    let last = end - TimeDelta::microseconds(1);
    for (used, by, now, verdict) in [
        (false, 3, start(), Ok(Verdict::Issue(scopes(0b11)))),
        (false, 3, last, Ok(Verdict::Issue(scopes(0b11)))),
        (false, 3, end, Err(GrantRefusal::Expired)),
        (true, 3, start(), Ok(Verdict::RevokeFamily)),
        (true, 3, last, Ok(Verdict::RevokeFamily)),
        (true, 3, end, Err(GrantRefusal::Unknown)),
        (false, 4, start(), Err(GrantRefusal::Unknown)),
        (true, 4, start(), Err(GrantRefusal::Unknown)),
    ] {
        let token = RefreshToken {
            scopes: scopes(0b11),
            expires_at: end,
            used_at: used.then(start),
        };
        let verdict_of = token.judge(&family(scopes(0b111)), client(by), now);
        assert_eq!(verdict_of, verdict, "{used} {by} {now}");
    }
}

#[test]
fn a_refresh_is_repeatable_for_a_day_until_its_successor_is_used() {
    let token = |used_at| RefreshToken {
        scopes: scopes(0b11),
        expires_at: start() + TimeDelta::days(90),
        used_at,
    };
    let (day, moment) = (TimeDelta::days(1), TimeDelta::microseconds(1));
    for (after, next_used, expected) in [
        (TimeDelta::zero(), None, Ok(Some(scopes(0b11)))),
        (day - moment, None, Ok(Some(scopes(0b11)))),
        (day - moment, Some(start()), Err(GrantRefusal::SuccessorUsed)),
        (day, None, Ok(None)),
        (day, Some(start()), Ok(None)),
    ] {
        let verdict = token(Some(start())).judge_repeat(&token(next_used), start() + after);
        assert_eq!(verdict, expected, "{after}");
    }
    assert_eq!(token(None).judge_repeat(&token(None), start()), Ok(None));
}

#[test]
fn a_family_ends_with_everything_it_depends_on() {
    let of = |code: &Code, change: fn(&mut FamilyStatus), now| {
        let mut family = family(scopes(0b1));
        change(&mut family.status);
        code.judge(&family, &presented(), now)
    };
    let verdict = |change| of(&code(), change, start());
    let (mut used, late) = (code(), start() + TimeDelta::minutes(10));
    used.used_at = Some(start());
    let ended: [(fn(&mut FamilyStatus), _); 5] = [
        (|status| status.revoked = true, GrantRefusal::Revoked),
        (|status| status.disconnected = true, GrantRefusal::Disconnected),
        (
            |status| (status.disconnected, status.revoked) = (true, true),
            GrantRefusal::Disconnected,
        ),
        (|status| status.closed = true, GrantRefusal::Revoked),
        (|status| status.application = None, GrantRefusal::Revoked),
    ];
    for (change, refusal) in ended {
        // It comes before a second use and the expiry.
        for verdict in [
            verdict(change),
            of(&used, change, start()),
            of(&code(), change, late),
        ] {
            assert_eq!(verdict, Err(refusal));
        }
    }
    let suspend: fn(&mut FamilyStatus) = |status| status.application = Some((Suspended, ScopeSet::all()));
    let refused = verdict(suspend).unwrap_err();
    assert_eq!(refused.reason(), Some("suspended"));
    assert_eq!(of(&used, suspend, start()), Ok(Verdict::RevokeFamily));
    let pending = verdict(|status| status.application = Some((Pending, ScopeSet::all())));
    assert_eq!(pending, Ok(Verdict::Issue(scopes(0b1))));
    let narrowed = verdict(|status| status.application = Some((Active, scopes(0b10))));
    assert_eq!(narrowed, Err(GrantRefusal::NoScope));
}

/// An event of a family.
#[derive(Debug, Clone)]
enum Step {
    Exchange { by: u128, good: bool },
    Refresh { by: u128, token: usize },
    SetScopes(i32),
    Suspend(bool),
    Disconnect,
    Close,
    Delete,
    Wait(i64),
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (3..5_u128, any::<bool>()).prop_map(|(by, good)| Step::Exchange { by, good }),
        6 => (3..5_u128, 0..6_usize).prop_map(|(by, token)| Step::Refresh { by, token }),
        1 => (1..64_i32).prop_map(Step::SetScopes),
        1 => any::<bool>().prop_map(Step::Suspend),
        1 => Just(Step::Disconnect),
        1 => Just(Step::Close),
        1 => Just(Step::Delete),
        1 => (0..50_i64).prop_map(Step::Wait),
    ]
}

/// The rows of a store.
struct Model {
    now: DateTime<Utc>,
    family: Family,
    code: Code,
    refreshes: Vec<RefreshToken>,
    exchanges: usize,
}

impl Model {
    fn apply(&mut self, verdict: Result<Verdict, GrantRefusal>, used: impl FnOnce(&mut Self)) {
        match verdict {
            Err(_) => {}
            Ok(Verdict::RevokeFamily) => self.family.status.revoked = true,
            Ok(Verdict::Issue(scopes)) => {
                used(self);
                self.refreshes.push(RefreshToken {
                    scopes,
                    expires_at: self.now + TimeDelta::days(90),
                    used_at: None,
                });
            }
        }
    }

    fn step(&mut self, step: &Step) {
        let status = &mut self.family.status;
        match (step, &mut status.application) {
            (&Step::Exchange { by, good }, _) => {
                let mut presented = presented();
                presented.client_id = client(by);
                if !good {
                    presented.redirect_uri.push('x');
                }
                let verdict = self.code.judge(&self.family, &presented, self.now);
                self.apply(verdict, |model| {
                    model.code.used_at = Some(model.now);
                    model.exchanges += 1;
                });
            }
            (&Step::Refresh { by, token }, _) => {
                if let Some(found) = self.refreshes.get(token) {
                    let verdict = found.judge(&self.family, client(by), self.now);
                    self.apply(verdict, |model| model.refreshes[token].used_at = Some(model.now));
                }
            }
            (Step::SetScopes(bits), Some((_, held))) => *held = scopes(*bits),
            (Step::Suspend(true), Some((status, _))) => *status = Suspended,
            (Step::Suspend(false), Some((status, _))) => *status = Active,
            (Step::SetScopes(_) | Step::Suspend(_), None) => {}
            (Step::Disconnect, _) => status.disconnected = true,
            (Step::Close, _) => status.closed = true,
            (Step::Delete, _) => status.application = None,
            (Step::Wait(days), _) => self.now += TimeDelta::days(*days),
        }
    }
}

proptest! {
    #[test]
    fn a_family_never_grows_and_is_used_one_token_at_a_time(
        consented in 1..64_i32,
        steps in prop::collection::vec(steps(), 1..60),
    ) {
        let mut model = Model {
            now: start(), family: family(scopes(consented)), code: code(), refreshes: Vec::new(), exchanges: 0,
        };
        for step in &steps {
            let (issued, ended) = (model.refreshes.len(), model.family.status.living().is_err());
            model.step(step);
            prop_assert!(model.exchanges <= 1, "a code is used at most once");
            let unused = model.refreshes.iter().filter(|token| token.used_at.is_none());
            prop_assert!(unused.count() <= 1, "at most one refresh token of a family can be used");
            prop_assert!(!ended || model.refreshes.len() == issued, "nothing is issued once the family has ended");
            for pair in model.refreshes.windows(2) {
                prop_assert!(pair[1].scopes.is_subset_of(pair[0].scopes), "the scopes never grow");
            }
            if let Some(first) = model.refreshes.first() {
                prop_assert!(first.scopes.is_subset_of(scopes(consented)) && !first.scopes.is_empty());
            }
        }
    }
}
