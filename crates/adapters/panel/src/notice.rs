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
    Redelivered,
    TestEventSent,
    /// Nothing was done, since the subscription gets nothing.
    NothingSent,
    /// Nothing was done, since the subscription has had its test events of this minute.
    TooManyTestEvents,
    /// Nothing was done, since the subscription has had its repeated deliveries of this minute.
    TooManyRedeliveries,
    PasswordSet,
    PasswordChanged,
    SignedOut,
    SignedOutEverywhere,
}

/// What a page says of a deed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Notice {
    /// Empty for nothing.
    pub(crate) text: &'static str,
    /// The class that it looks by.
    pub(crate) class: &'static str,
}

impl Notice {
    pub(crate) const NONE: Self = Self { text: "", class: "" };
}

impl Done {
    const ALL: [Self; 13] = [
        Self::Saved,
        Self::Deleted,
        Self::Revoked,
        Self::Disconnected,
        Self::Redelivered,
        Self::TestEventSent,
        Self::NothingSent,
        Self::TooManyTestEvents,
        Self::TooManyRedeliveries,
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
            Self::Redelivered => "redelivered",
            Self::TestEventSent => "test-event-sent",
            Self::NothingSent => "nothing-sent",
            Self::TooManyTestEvents => "too-many-test-events",
            Self::TooManyRedeliveries => "too-many-redeliveries",
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
            Self::Redelivered => t.deliveries.redelivered,
            Self::TestEventSent => t.deliveries.test_event_sent,
            Self::NothingSent => t.deliveries.nothing_sent,
            Self::TooManyTestEvents => t.deliveries.too_many_test_events,
            Self::TooManyRedeliveries => t.deliveries.too_many_redeliveries,
            Self::PasswordSet => t.notices.password_set,
            Self::PasswordChanged => t.notices.password_changed,
            Self::SignedOut => t.notices.signed_out,
            Self::SignedOutEverywhere => t.notices.signed_out_everywhere,
        }
    }

    const fn class(self) -> &'static str {
        match self {
            Self::NothingSent | Self::TooManyTestEvents | Self::TooManyRedeliveries => "warning",
            _ => "notice",
        }
    }

    /// The address of the page that tells of it, which may have a query.
    pub(crate) fn on(self, path: &str) -> String {
        let mark = if path.contains('?') { '&' } else { '?' };
        format!("{path}{mark}done={}", self.word())
    }
}

/// What a query tells of.
pub(crate) fn of(query: &Form, t: &Texts) -> Notice {
    let word = query.get("done").unwrap_or_default();
    let done = Done::ALL.into_iter().find(|done| done.word() == word);
    done.map_or(Notice::NONE, |done| Notice {
        text: done.text(t),
        class: done.class(),
    })
}
