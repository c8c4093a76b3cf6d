//! An owner's changes to a registered application (contract: Application registration).

use std::{fmt, str::FromStr};

use kernel::{BrokenRules, Change, Fingerprint};

use crate::registration::{description, redirect_uris, scopes};
use crate::{Application, ApplicationEvent, Rule, ScopeSet};

/// A submitted form.
#[derive(Debug, Clone, Default)]
pub struct RawEdit {
    /// Empty means none.
    pub description: Option<String>,
    pub redirect_uris: Vec<String>,
    pub scopes: Vec<String>,
}

/// A validated change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApplicationEdit {
    description: Option<String>,
    redirect_uris: Vec<String>,
    scopes: ScopeSet,
}

impl RawEdit {
    /// Validates every field and reports all violations together, under the field names of the registration.
    pub fn check(self) -> Result<ApplicationEdit, BrokenRules<Rule>> {
        let mut violations = BrokenRules::default();
        let description = violations.check("description", description(self.description));
        let redirect_uris = redirect_uris(self.redirect_uris, &mut violations);
        let scopes = scopes(&self.scopes, &mut violations);
        let both = description.zip(scopes);
        let edit = both.map(|(description, scopes)| ApplicationEdit {
            description,
            redirect_uris,
            scopes,
        });
        violations.into_result(edit)
    }
}

/// A digest of each part of an application as a form showed it, to detect later changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown([u64; 3]);

/// The names of the parts, in their order.
const PARTS: [&str; 3] = ["description", "redirect_uris", "scopes"];

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [description, redirect_uris, scopes] = self.0;
        write!(f, "{description:x}.{redirect_uris:x}.{scopes:x}")
    }
}

impl FromStr for Shown {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts = text.splitn(PARTS.len(), '.');
        let mut part = || u64::from_str_radix(parts.next().unwrap_or_default(), 16);
        Ok(Self([part()?, part()?, part()?]))
    }
}

/// The application was changed after its form was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the application has been changed since the form was opened")]
pub struct ChangedSince;

impl Application {
    /// What a form shows now. The scopes' part includes the grant, since the form's effect depends on it.
    pub fn shown(&self) -> Shown {
        let digest = |parts: &[&[u8]]| {
            let first = Fingerprint::of(parts).bytes().first_chunk().copied();
            u64::from_be_bytes(first.unwrap_or_default())
        };
        let description = self.description.as_deref().unwrap_or_default();
        let redirect_uris: Vec<_> = self.redirect_uris.iter().map(String::as_bytes).collect();
        let scopes = [Some(self.scopes), Some(self.requested), self.ceiling()]
            .map(|scopes| scopes.map_or(-1, ScopeSet::bits).to_be_bytes());
        Shown([
            digest(&[description.as_bytes()]),
            digest(&redirect_uris),
            digest(&scopes.each_ref().map(<[u8; 4]>::as_slice)),
        ])
    }

    /// The fields that have changed since a form was opened.
    pub fn changed_since(&self, shown: Shown) -> impl Iterator<Item = &'static str> {
        let parts = PARTS.into_iter().zip(self.shown().0).zip(shown.0);
        parts.filter_map(|((name, now), then)| (now != then).then_some(name))
    }

    /// Applies the owner's edit, made in a form that showed `shown`. If the application was changed since,
    /// only an edit without an effect is accepted. Narrowed scopes take effect on existing tokens; removing a
    /// redirect URI revokes nothing that was issued (D89). Scopes beyond the ceiling are only requested
    /// (D138).
    pub fn edited(
        self,
        edit: ApplicationEdit,
        shown: Option<Shown>,
    ) -> Result<Change<Self, ApplicationEvent>, ChangedSince> {
        let before = self.clone();
        let ApplicationEdit {
            description,
            redirect_uris,
            scopes,
        } = edit;
        let granted = self.ceiling();
        let (allowed, requested) = match granted {
            Some(granted) => (scopes.intersection(granted), scopes.difference(granted)),
            None => (scopes, ScopeSet::default()),
        };
        let after = Self {
            description,
            redirect_uris,
            scopes: allowed,
            granted,
            requested,
            ..self
        };
        if after != before && shown.is_some_and(|shown| shown != before.shown()) {
            return Err(ChangedSince);
        }
        let mut events = Vec::new();
        if !requested.is_empty() && requested != before.requested {
            events.push(ApplicationEvent::ScopesRequested);
        }
        if after.redirect_uris != before.redirect_uris {
            events.push(ApplicationEvent::Changed);
        }
        Ok(Change::of_existing(after, events))
    }
}

#[cfg(test)]
mod tests;
