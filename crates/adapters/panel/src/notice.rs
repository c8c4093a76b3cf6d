//! What was done just before, said on the page that a form leads to. The address carries a word for it, never a text.

use web::form::Form;

use crate::texts::Texts;

/// A deed that is told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Done {
    Saved,
    Deleted,
    Revoked,
    Disconnected,
    PasswordSet,
    PasswordChanged,
    SignedOut,
    SignedOutEverywhere,
}

impl Done {
    const ALL: [Self; 8] = [
        Self::Saved,
        Self::Deleted,
        Self::Revoked,
        Self::Disconnected,
        Self::PasswordSet,
        Self::PasswordChanged,
        Self::SignedOut,
        Self::SignedOutEverywhere,
    ];

    const fn word(self) -> &'static str {
        match self {
            Self::Saved => "saved",
            Self::Deleted => "deleted",
            Self::Revoked => "revoked",
            Self::Disconnected => "disconnected",
            Self::PasswordSet => "password-set",
            Self::PasswordChanged => "password-changed",
            Self::SignedOut => "signed-out",
            Self::SignedOutEverywhere => "signed-out-everywhere",
        }
    }

    const fn text(self, t: &Texts) -> &'static str {
        match self {
            Self::Saved => t.notices.saved,
            Self::Deleted => t.notices.deleted,
            Self::Revoked => t.notices.revoked,
            Self::Disconnected => t.notices.disconnected,
            Self::PasswordSet => t.notices.password_set,
            Self::PasswordChanged => t.notices.password_changed,
            Self::SignedOut => t.notices.signed_out,
            Self::SignedOutEverywhere => t.notices.signed_out_everywhere,
        }
    }

    /// The address of the page that tells of it.
    pub(crate) fn on(self, path: &str) -> String {
        format!("{path}?done={}", self.word())
    }
}

/// What a query tells of; empty for nothing.
pub(crate) fn of(query: &Form, t: &Texts) -> &'static str {
    let word = query.get("done").unwrap_or_default();
    let done = Done::ALL.into_iter().find(|done| done.word() == word);
    done.map_or("", |done| done.text(t))
}
