//! The state machine of a family, tested with a model: any sequence of exchanges, refreshes and everything that ends a family.

use chrono::TimeDelta;
use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::{ApplicationStatus, Code, CodeChallenge, CodePresented, CodeVerifier, Standing};

const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

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
        standing: Standing {
            revoked: false,
            disconnected: false,
            closed: false,
            application: Some((ApplicationStatus::Active, ScopeSet::all())),
        },
    }
}

fn code() -> Code {
    Code {
        redirect_uri: "https://app.example/cb".to_owned(),
        challenge: CodeChallenge::new(CHALLENGE.to_owned()).unwrap(),
        expires_at: start() + TimeDelta::minutes(10),
        used_at: None,
    }
}

fn presented() -> CodePresented {
    CodePresented {
        client_id: client(3),
        redirect_uri: "https://app.example/cb".to_owned(),
        verifier: CodeVerifier::new(VERIFIER.to_owned()).unwrap(),
    }
}

#[test]
fn what_is_wrong_with_an_exchange_decides_what_comes_of_it() {
    let (family, code, fine) = (family(scopes(0b111)), code(), presented());
    let used = Code {
        used_at: Some(start()),
        ..code.clone()
    };
    let wrong_address = CodePresented {
        redirect_uri: "https://app.example/".to_owned(),
        ..fine.clone()
    };
    let wrong_verifier = CodePresented {
        verifier: CodeVerifier::new("x".repeat(43)).unwrap(),
        ..fine.clone()
    };
    let stranger = CodePresented {
        client_id: client(4),
        ..fine.clone()
    };
    let late = start() + TimeDelta::minutes(10);

    assert_eq!(code.judge(&family, &fine, start()), Verdict::Issue(scopes(0b111)));
    assert_eq!(used.judge(&family, &fine, start()), Verdict::RevokeFamily);
    assert_eq!(used.judge(&family, &fine, late), Verdict::RevokeFamily);
    assert_eq!(
        code.judge(&family, &fine, late),
        Verdict::Refuse(GrantRefusal::Expired)
    );
    for (wrong, refusal) in [
        (wrong_address, GrantRefusal::Mismatch),
        (wrong_verifier, GrantRefusal::Mismatch),
        (stranger, GrantRefusal::Unknown),
    ] {
        assert_eq!(code.judge(&family, &wrong, start()), Verdict::Refuse(refusal));
        assert_eq!(
            used.judge(&family, &wrong, start()),
            Verdict::Refuse(refusal),
            "revokes nothing"
        );
    }
}

#[test]
fn what_is_wrong_with_a_refresh_decides_what_comes_of_it() {
    let family = family(scopes(0b111));
    let end = start() + TimeDelta::days(90);
    let fresh = RefreshToken {
        scopes: scopes(0b11),
        expires_at: end,
        used_at: None,
    };
    let used = RefreshToken {
        used_at: Some(start()),
        ..fresh
    };
    let (own, strangers) = (client(3), client(4));
    let (expired, unknown) = (GrantRefusal::Expired, GrantRefusal::Unknown);
    let last = end - TimeDelta::microseconds(1);

    assert_eq!(fresh.judge(&family, own, start()), Verdict::Issue(scopes(0b11)));
    assert_eq!(fresh.judge(&family, own, last), Verdict::Issue(scopes(0b11)));
    assert_eq!(fresh.judge(&family, own, end), Verdict::Refuse(expired));
    assert_eq!(used.judge(&family, own, start()), Verdict::RevokeFamily);
    assert_eq!(used.judge(&family, own, end), Verdict::RevokeFamily);
    for token in [fresh, used] {
        let verdict = token.judge(&family, strangers, start());
        assert_eq!(verdict, Verdict::Refuse(unknown), "revokes nothing");
    }
}

#[test]
fn whatever_a_family_hangs_on_ends_it() {
    let whole = family(scopes(0b1)).standing;
    let suspended = Some((ApplicationStatus::Suspended, ScopeSet::all()));
    for ended in [
        Standing {
            revoked: true,
            ..whole
        },
        Standing {
            disconnected: true,
            ..whole
        },
        Standing {
            closed: true,
            ..whole
        },
        Standing {
            application: None,
            ..whole
        },
        Standing {
            application: suspended,
            ..whole
        },
    ] {
        let family = Family {
            standing: ended,
            ..family(scopes(0b1))
        };
        assert_eq!(
            code().judge(&family, &presented(), start()),
            Verdict::Refuse(GrantRefusal::Ended)
        );
    }
    let pending = Some((ApplicationStatus::Pending, ScopeSet::all()));
    let pending = Family {
        standing: Standing {
            application: pending,
            ..whole
        },
        ..family(scopes(0b1))
    };
    assert_eq!(
        code().judge(&pending, &presented(), start()),
        Verdict::Issue(scopes(0b1))
    );
    let narrowed = Some((ApplicationStatus::Active, scopes(0b10)));
    let narrowed = Family {
        standing: Standing {
            application: narrowed,
            ..whole
        },
        ..family(scopes(0b1))
    };
    assert_eq!(
        code().judge(&narrowed, &presented(), start()),
        Verdict::Refuse(GrantRefusal::NoScope)
    );
}

/// An event of a family.
#[derive(Debug, Clone)]
enum Step {
    Exchange { by: u128, good: bool },
    Refresh { by: u128, token: usize },
    Hold(i32),
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
        1 => (1..64_i32).prop_map(Step::Hold),
        1 => any::<bool>().prop_map(Step::Suspend),
        1 => Just(Step::Disconnect),
        1 => Just(Step::Close),
        1 => Just(Step::Delete),
        1 => (0..50_i64).prop_map(Step::Wait),
    ]
}

/// The rows as a store would hold them.
struct Model {
    now: DateTime<Utc>,
    family: Family,
    code: Code,
    refreshes: Vec<RefreshToken>,
    exchanges: usize,
}

impl Model {
    fn apply(&mut self, verdict: Verdict, used: impl FnOnce(&mut Self)) {
        match verdict {
            Verdict::Refuse(_) => {}
            Verdict::RevokeFamily => self.family.standing.revoked = true,
            Verdict::Issue(scopes) => {
                used(self);
                let expires_at = self.now + TimeDelta::days(90);
                self.refreshes.push(RefreshToken {
                    scopes,
                    expires_at,
                    used_at: None,
                });
            }
        }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Exchange { by, good } => {
                let mut presented = CodePresented {
                    client_id: client(by),
                    ..presented()
                };
                if !good {
                    presented.redirect_uri.push('x');
                }
                let verdict = self.code.judge(&self.family, &presented, self.now);
                self.apply(verdict, |model| {
                    model.code.used_at = Some(model.now);
                    model.exchanges += 1;
                });
            }
            Step::Refresh { by, token } => {
                let Some(found) = self.refreshes.get(token).copied() else {
                    return;
                };
                let verdict = found.judge(&self.family, client(by), self.now);
                self.apply(verdict, |model| model.refreshes[token].used_at = Some(model.now));
            }
            Step::Hold(bits) => {
                if let Some((_, held)) = &mut self.family.standing.application {
                    *held = scopes(bits);
                }
            }
            Step::Suspend(suspended) => {
                if let Some((status, _)) = &mut self.family.standing.application {
                    let other = ApplicationStatus::Active;
                    *status = if suspended {
                        ApplicationStatus::Suspended
                    } else {
                        other
                    };
                }
            }
            Step::Disconnect => self.family.standing.disconnected = true,
            Step::Close => self.family.standing.closed = true,
            Step::Delete => self.family.standing.application = None,
            Step::Wait(days) => self.now += TimeDelta::days(days),
        }
    }

    fn unused(&self) -> usize {
        self.refreshes
            .iter()
            .filter(|token| token.used_at.is_none())
            .count()
    }
}

proptest! {
    #[test]
    fn a_family_keeps_its_promises(consented in 1..64_i32, steps in prop::collection::vec(steps(), 1..60)) {
        let mut model = Model {
            now: start(), family: family(scopes(consented)), code: code(), refreshes: Vec::new(), exchanges: 0,
        };
        for step in &steps {
            let (issued, ended) = (model.refreshes.len(), model.family.standing.issuable().is_none());
            model.step(step);
            prop_assert!(model.exchanges <= 1, "a code is used at most once");
            prop_assert!(model.unused() <= 1, "at most one refresh token of a family can be used");
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
