//! What stands around every page: title, navigation, language, links.

use oauth::BrowserSecret;

use crate::language::Language;
use crate::next::Destination;
use crate::notice::Notice;
use crate::texts::Texts;
use crate::visit::{Member, Visit, Visitor};
use crate::{PanelSettings, assets};

/// What every template is given.
pub(crate) struct Frame {
    pub(crate) t: &'static Texts,
    pub(crate) language: Language,
    pub(crate) title: String,
    pub(crate) service: String,
    pub(crate) docs_url: String,
    pub(crate) style: String,
    pub(crate) icon: String,
    /// Where this page is in the other language.
    pub(crate) switch: String,
    /// The CSRF token of this page's forms.
    pub(crate) csrf: String,
    /// The name of the business that is signed in; empty when nobody is.
    pub(crate) member: String,
    pub(crate) navigation: Vec<Item>,
    /// What was done just before.
    pub(crate) notice: Notice,
}

/// A link of the navigation.
pub(crate) struct Item {
    pub(crate) path: &'static str,
    pub(crate) label: &'static str,
    /// The value of `aria-current`; empty when one is elsewhere.
    pub(crate) current: &'static str,
}

impl Frame {
    /// Of a page that needs no session.
    pub(crate) fn of_visitor(visitor: &Visitor, title: impl Into<String>) -> Self {
        Self::of_visit(&visitor.visit, &visitor.browser, title.into())
    }

    /// Of a page for somebody who is signed in.
    pub(crate) fn of_member(member: &Member, title: impl Into<String>) -> Self {
        let frame = Self::of_visit(&member.visit, &member.browser, title.into());
        Self {
            member: member.seller().name.clone(),
            navigation: navigation(frame.t, &member.visit.path),
            ..frame
        }
    }

    fn of_visit(visit: &Visit, browser: &BrowserSecret, title: String) -> Self {
        Self {
            csrf: browser.csrf_token(),
            switch: switch(visit),
            ..Self::bare(&visit.panel.settings, visit.language, title)
        }
    }

    /// Of a page about a failure: it links nowhere that might not be there, and has no forms.
    pub(crate) fn bare(settings: &PanelSettings, language: Language, title: String) -> Self {
        Self {
            t: language.texts(),
            language,
            title,
            service: settings.service_name.clone(),
            docs_url: settings.docs_url.clone(),
            style: assets::STYLE.path(),
            icon: assets::ICON.path(),
            switch: String::new(),
            csrf: String::new(),
            member: String::new(),
            navigation: Vec::new(),
            notice: Notice::NONE,
        }
    }

    /// With what was done just before.
    pub(crate) fn noting(mut self, visit: &Visit) -> Self {
        self.notice = crate::notice::of(&visit.query, self.t);
        self
    }
}

fn navigation(t: &Texts, here: &str) -> Vec<Item> {
    let pages = [
        (Destination::Applications, t.frame.applications),
        (Destination::Tokens, t.frame.tokens),
        (Destination::Connections, t.frame.connections),
        (Destination::Deliveries, t.frame.deliveries),
        (Destination::Account, t.frame.account),
    ];
    let item = |(destination, label): (Destination, _)| Item {
        path: destination.path(),
        label,
        current: match here.strip_prefix(destination.path()) {
            Some("") => "page",
            Some(rest) if rest.starts_with('/') => "true",
            _ => "",
        },
    };
    pages.map(item).into()
}

/// This page with another language asked for, and without what was said of a deed.
fn switch(visit: &Visit) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    let kept = visit
        .query
        .pairs()
        .filter(|(name, _)| !matches!(*name, "lang" | "done"));
    query.extend_pairs(kept);
    query.append_pair("lang", visit.language.other().code());
    format!("{}?{}", visit.path, query.finish())
}
