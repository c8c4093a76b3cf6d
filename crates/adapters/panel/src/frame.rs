//! The frame of every page: title, navigation, language, links, and the notice about a completed action.

use std::sync::LazyLock;

use oauth::Scope;
use web::assets::Asset;
use web::path::is_under;
use web::{ServiceSettings, theme};

use crate::page_request::{PageRequest, SignedInRequest};
use crate::pages::with_query;
use crate::texts::{Language, Texts};

/// The style sheet of every page.
pub(crate) static STYLE: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("/panel/assets", "panel.css", theme::STYLE));

/// The icon in the browser's tab.
pub(crate) static ICON: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("/panel/assets", "icon.svg", theme::ICON));

/// The data of every template.
pub(crate) struct Frame {
    pub(crate) t: &'static Texts,
    pub(crate) title: String,
    pub(crate) service: String,
    pub(crate) docs_url: String,
    pub(crate) style: String,
    pub(crate) icon: String,
    /// The address of this page in the other language.
    pub(crate) switch: String,
    /// The CSRF token of this page's forms.
    pub(crate) csrf: String,
    /// The name of the signed-in business; empty if nobody is signed in.
    pub(crate) seller_name: String,
    /// Path, label and value of `aria-current` of each page.
    pub(crate) navigation: Vec<(&'static str, &'static str, &'static str)>,
    /// The CSS class and the text of the notice; empty for none.
    pub(crate) notice: (&'static str, &'static str),
}

impl Frame {
    /// The frame of a failure page: it has no forms, and no links to pages that might not exist.
    pub(crate) fn bare(service: &ServiceSettings, language: Language, title: String) -> Self {
        Self {
            t: language.texts(),
            title,
            service: service.name.clone(),
            docs_url: service.docs_url.clone(),
            style: STYLE.address.clone(),
            icon: ICON.address.clone(),
            switch: String::new(),
            csrf: String::new(),
            seller_name: String::new(),
            navigation: Vec::new(),
            notice: ("", ""),
        }
    }
}

impl PageRequest {
    /// The frame of a page that needs no session.
    pub(crate) fn frame(&self, title: impl Into<String>) -> Frame {
        Frame {
            csrf: self.browser.csrf_token(),
            switch: self.in_other_language(),
            ..Frame::bare(&self.panel.ports.service, self.language, title.into())
        }
    }

    /// The notice about the result of the form that led here. The address contains only a word, never a text.
    pub(crate) fn notice(&self) -> (&'static str, &'static str) {
        let t = self.texts();
        match self.query.get("done").unwrap_or_default() {
            "saved" => ("notice", t.notices.saved),
            "deleted" => ("notice", t.notices.deleted),
            "revoked" => ("notice", t.notices.revoked),
            "disconnected" => ("notice", t.notices.disconnected),
            "subscription-deleted" => ("notice", t.deliveries.deleted),
            "redelivered" => ("notice", t.deliveries.redelivered),
            "test-event-sent" => ("notice", t.deliveries.test_event_sent),
            "nothing-sent" => ("warning", t.deliveries.nothing_sent),
            "under-way" => ("warning", t.deliveries.under_way),
            "too-many-test-events" => ("warning", t.deliveries.too_many_test_events),
            "too-many-redeliveries" => ("warning", t.deliveries.too_many_redeliveries),
            "password-set" => ("notice", t.notices.password_set),
            "password-changed" => ("notice", t.notices.password_changed),
            "session-ended" => ("warning", t.notices.session_ended),
            "signed-out" => ("notice", t.notices.signed_out),
            "signed-out-everywhere" => ("notice", t.notices.signed_out_everywhere),
            _ => ("", ""),
        }
    }

    /// The address of this page in the other language, without the notice.
    fn in_other_language(&self) -> String {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        let kept = self.query.pairs();
        query.extend_pairs(kept.filter(|(name, _)| !matches!(*name, "lang" | "done")));
        let kept = query.finish();
        self.in_other_language_at(&match kept.as_str() {
            "" => self.path.clone(),
            kept => format!("{}?{kept}", self.path),
        })
    }

    /// An address of the panel, in the other language.
    pub(crate) fn in_other_language_at(&self, address: &str) -> String {
        with_query(address, "lang", self.texts().frame.other_language.as_str())
    }
}

impl SignedInRequest {
    /// The frame of a page for a signed-in seller.
    pub(crate) fn frame(&self, title: impl Into<String>) -> Frame {
        let t = &self.texts().frame;
        let pages = [
            ("/panel/applications", t.applications),
            ("/panel/offers", t.offers),
            ("/panel/orders", t.orders),
            ("/panel/tokens", t.tokens),
            ("/panel/connections", t.connections),
            ("/panel/deliveries", t.deliveries),
            ("/panel/account", t.account),
        ];
        let current = |path| match self.path.as_str() {
            here if here == path => "page",
            here if is_under(here, path) => "true",
            _ => "",
        };
        Frame {
            seller_name: self.seller().name.clone(),
            navigation: pages.map(|(path, label)| (path, label, current(path))).into(),
            notice: self.notice(),
            ..self.request.frame(title)
        }
    }
}

/// Whether a scope allows changes or shows buyers' personal data.
pub(crate) const fn is_dangerous(scope: Scope) -> bool {
    match scope {
        Scope::OffersWrite
        | Scope::OrdersRead
        | Scope::ShipmentsWrite
        | Scope::SettingsWrite
        | Scope::OrdersWrite
        | Scope::ReturnsRead
        | Scope::ReturnsWrite
        | Scope::PricelistsWrite
        | Scope::PoliciesWrite
        | Scope::Messaging => true,
        Scope::OffersRead
        | Scope::SettingsRead
        | Scope::ShipmentsRead
        | Scope::PricelistsRead
        | Scope::PoliciesRead
        | Scope::BillingRead
        | Scope::ProfileRead => false,
    }
}
