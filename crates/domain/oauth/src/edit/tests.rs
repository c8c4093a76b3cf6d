//! Edits by the owner beside the marketplace's decisions, in any order.

use chrono::DateTime;
use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::{ApplicationStatus, Purpose, Transition, TransitionRefusal};

fn application() -> Application {
    Application {
        description: Some("Keeps stock in step".to_owned()),
        redirect_uris: vec!["https://app.example/cb".to_owned()],
        ..Application::built_in(Uuid::nil().into(), Uuid::nil().into(), DateTime::UNIX_EPOCH).after
    }
}

/// A pending application for other sellers with these scopes.
fn pending(scopes: &str) -> Application {
    Application {
        purpose: Purpose::ForOtherSellers,
        status: ApplicationStatus::Pending,
        scopes: set(scopes),
        ..application()
    }
}

fn set(scopes: &str) -> ScopeSet {
    ScopeSet::parse(scopes).unwrap()
}

fn accepted(application: Application) -> Application {
    application.moved(Transition::Accept, None).unwrap().after
}

/// The edit that changes the scopes alone.
fn asking(application: &Application, scopes: ScopeSet) -> ApplicationEdit {
    ApplicationEdit {
        description: application.description.clone(),
        redirect_uris: application.redirect_uris.clone(),
        scopes,
    }
}

fn edited(application: Application, scopes: &str) -> Change<Application, ApplicationEvent> {
    let edit = asking(&application, set(scopes));
    application.edited(edit, None).unwrap()
}

/// The scopes in effect, and those asked for.
fn scopes(application: &Application) -> [String; 2] {
    [application.scopes, application.requested].map(|scopes| scopes.to_string())
}

#[test]
fn an_edit_keeps_the_rules_of_registration() {
    let fine = RawEdit {
        description: Some(String::new()),
        redirect_uris: Vec::new(),
        scopes: vec!["messaging".into()],
    };
    let edit = fine.check().unwrap();
    assert_eq!(edit.description, None);
    let Change { after, events, .. } = application().edited(edit, None).unwrap();
    assert_eq!(after.description, None);
    assert_eq!(after.redirect_uris, [""; 0]);
    assert_eq!(after.scopes.to_string(), "messaging");
    assert_eq!(events, [ApplicationEvent::Changed]);
    let expected = Application {
        description: after.description.clone(),
        redirect_uris: after.redirect_uris.clone(),
        scopes: after.scopes,
        ..application()
    };
    assert_eq!(after, expected);
    let wrong = RawEdit {
        description: Some("x".repeat(2001)),
        redirect_uris: vec!["http://a.example".into()],
        scopes: Vec::new(),
    };
    let wrong = wrong.check().unwrap_err();
    let paths: Vec<_> = wrong.iter().map(|(path, _)| path).collect();
    assert_eq!(paths, ["description", "redirect_uris[0]", "scopes"]);
}

#[test]
fn the_owner_moves_below_the_ceiling_and_asks_for_more() {
    let accepted_with = accepted(pending("offers:read orders:read"));
    let narrowed = edited(accepted_with, "offers:read");
    assert_eq!(
        (scopes(&narrowed.after), narrowed.events),
        (["offers:read", ""].map(str::to_owned), vec![])
    );
    let asked = edited(narrowed.after, "orders:read messaging");
    assert_eq!(scopes(&asked.after), ["orders:read", "messaging"]);
    let requested = [ApplicationEvent::ScopesRequested];
    assert_eq!(asked.events, requested);
    // The same request again is no news; another one is, and the ceiling has not moved.
    let again = edited(asked.after, "messaging");
    assert_eq!(
        (scopes(&again.after), again.events),
        (["", "messaging"].map(str::to_owned), vec![])
    );
    let other = edited(again.after, "offers:read orders:read messaging profile:read");
    assert_eq!(
        scopes(&other.after),
        ["offers:read orders:read", "messaging profile:read"]
    );
    assert_eq!(other.events, requested);
    let granted = accepted(other.after);
    assert_eq!(
        scopes(&granted),
        ["offers:read orders:read messaging profile:read", ""]
    );
}

#[test]
fn an_operators_scopes_are_a_ceiling_for_own_use_too_and_decide_the_request() {
    let own = edited(application(), "offers:read orders:read").after;
    assert_eq!(own.ceiling(), None);
    let narrowed = own.adjusted(None, Some(set("offers:read"))).after;
    let asked = edited(narrowed, "offers:read orders:read").after;
    assert_eq!(scopes(&asked), ["offers:read", "orders:read"]);
    assert_eq!(scopes(&asked.clone().adjusted(None, None).after), scopes(&asked));
    let declined = asked.adjusted(None, Some(set("offers:read"))).after;
    assert_eq!(scopes(&declined), ["offers:read", ""]);
    // An application that was accepted by an older program has no stored grant.
    let old = Application {
        status: ApplicationStatus::Active,
        ..pending("offers:read")
    };
    assert_eq!(
        scopes(&edited(old, "offers:read orders:read").after),
        ["offers:read", "orders:read"]
    );
}

#[test]
fn an_acceptance_names_what_is_asked_for() {
    let refused = |application: &Application, named: &str| {
        let refused = application.clone().moved(Transition::Accept, Some(set(named)));
        let TransitionRefusal::Request(request) = refused.unwrap_err() else {
            panic!("{named}")
        };
        request.to_string()
    };
    let accepting = |application: &Application, named: &str| {
        let after = application.clone().moved(Transition::Accept, Some(set(named)));
        after.unwrap().after
    };
    let new = pending("offers:read orders:read");
    assert_eq!(refused(&new, "offers:read"), "offers:read orders:read");
    let active = accepting(&new, "orders:read offers:read");
    assert_eq!(active.status, ApplicationStatus::Active);
    // A repeat is harmless; another acceptance is not.
    assert_eq!(accepting(&active, "offers:read orders:read"), active);
    for other in ["offers:read", "messaging"] {
        assert_eq!(refused(&active, other), "");
    }
    let asking = edited(active, "offers:read messaging").after;
    for other in ["offers:read", "offers:read messaging", "messaging profile:read"] {
        assert_eq!(refused(&asking, other), "messaging");
    }
    let granted = accepting(&asking, "messaging");
    assert_eq!(scopes(&granted), ["offers:read messaging", ""]);
    assert_eq!(scopes(&edited(granted, "orders:read").after), ["orders:read", ""]);
    // What an operator had set for a pending application counts no more once an acceptance names less.
    let set_wider = new.adjusted(None, Some(set("offers:read messaging"))).after;
    let asking = edited(set_wider, "offers:read profile:read").after;
    let named = set("offers:read profile:read");
    assert_eq!(accepting(&asking, &named.to_string()).ceiling(), Some(named));
    assert_eq!(accepted(asking).ceiling(), Some(named.union(set("messaging"))));
}

#[test]
fn a_form_that_was_opened_before_another_change_is_refused_with_what_changed() {
    let before = accepted(pending("offers:read orders:read"));
    let shown: Shown = before.shown().to_string().parse().unwrap();
    let asked =
        |application: Application| application.edited(asking(&before, set("offers:read")), Some(shown));
    assert!(asked(before.clone()).is_ok());
    let other = Application {
        description: None,
        redirect_uris: vec!["https://app.example/".to_owned(), "cb".to_owned()],
        ..before.clone()
    };
    for (now, changed) in [
        (before.clone(), vec![]),
        (before.clone().adjusted(None, Some(before.scopes)).after, vec![]),
        (
            before.clone().adjusted(None, Some(set("offers:read"))).after,
            vec!["scopes"],
        ),
        (edited(before.clone(), "offers:read").after, vec!["scopes"]),
        (other, vec!["description", "redirect_uris"]),
    ] {
        assert_eq!(now.changed_since(shown).collect::<Vec<_>>(), changed);
        let is_so_already = now.scopes == set("offers:read");
        assert_eq!(asked(now).is_err(), !changed.is_empty() && !is_so_already);
    }
    for wrong in ["", "1", "1.2", "1.2.x", "1.2.3.4"] {
        assert!(wrong.parse::<Shown>().is_err(), "{wrong}");
    }
}

/// One step of an owner or an operator.
#[derive(Debug, Clone)]
enum Step {
    Edit(ScopeSet),
    Adjust(ScopeSet),
    Move(Transition),
}

fn step() -> impl Strategy<Value = Step> {
    let some = (1_i32..16).prop_map(|bits| ScopeSet::from_bits(bits).unwrap());
    let moves = [Transition::Accept, Transition::Suspend, Transition::Reinstate].map(Step::Move);
    prop_oneof![
        some.clone().prop_map(Step::Edit),
        some.prop_map(Step::Adjust),
        prop::sample::select(moves.to_vec()),
    ]
}

proptest! {
    /// After the first decision, scopes count that an operator has granted, and no others, and the owner
    /// loses no wish by asking.
    #[test]
    fn nothing_counts_that_was_not_granted(steps in prop::collection::vec(step(), 1..12), own_use: bool) {
        let mut now = if own_use { application() } else { pending("offers:read") };
        let mut granted = None;
        for step in steps {
            let wanted = now.wanted();
            match step {
                Step::Edit(scopes) => {
                    let edit = asking(&now, scopes);
                    now = now.edited(edit, None).unwrap().after;
                    prop_assert_eq!(now.wanted(), scopes);
                }
                Step::Adjust(scopes) => {
                    now = now.adjusted(None, Some(scopes)).after;
                    granted = Some(scopes);
                }
                Step::Move(transition) => {
                    let request = now.request();
                    let Ok(change) = now.clone().moved(transition, None) else { continue };
                    now = change.after;
                    if transition == Transition::Accept && !request.is_empty() {
                        granted = Some(granted.map_or(wanted, |granted| granted.union(wanted)));
                        prop_assert_eq!((now.scopes, now.request()), (wanted, ScopeSet::default()));
                    }
                }
            }
            prop_assert_eq!(now.ceiling(), granted);
            let granted = granted.unwrap_or(ScopeSet::all());
            prop_assert!(now.scopes.is_subset_of(granted));
            prop_assert!(now.requested.intersection(granted).is_empty());
        }
    }
}
