//! The texts of the pages, in both languages side by side. A text that lacks a language does not compile.

/// Declares the texts by page, each in English and then in Polish. All are strings unless a type is given.
macro_rules! texts {
    ($($(#[$doc:meta])* $page:ident: $type:ident {
        $($name:ident $(: $kind:ty)? => $english:expr, $polish:expr;)+
    })+) => {
        /// Every text in one language.
        pub(crate) struct Texts {
            pub(crate) language: Language,
            $($(#[$doc])* pub(crate) $page: $type,)+
        }
        $($(#[$doc])* pub(crate) struct $type {
            $(pub(crate) $name: kind!($($kind)?),)+
        })+
        pub(crate) static ENGLISH: Texts = Texts {
            language: Language::English,
            $($page: $type { $($name: $english,)+ },)+
        };
        pub(crate) static POLISH: Texts = Texts {
            language: Language::Polish,
            $($page: $type { $($name: $polish,)+ },)+
        };
    };
}

macro_rules! kind {
    () => { &'static str };
    ($kind:ty) => { $kind };
}

mod rules;
mod table;

use oauth::{ApplicationStatus, ClientType, Purpose, Scope};
use webhooks::{AttemptFailure, WebhookEvent};

use crate::language::Language;
pub(crate) use rules::Rule;
pub(crate) use table::{ENGLISH, POLISH, Texts};

/// A title, and a text with advice.
pub(crate) type Message = (&'static str, &'static str);

impl Texts {
    const fn pick(&self, (english, polish): (&'static str, &'static str)) -> &'static str {
        match self.language {
            Language::English => english,
            Language::Polish => polish,
        }
    }

    /// The permission that a scope gives; the English text is the contract's.
    pub(crate) const fn scope(&self, scope: Scope) -> &'static str {
        self.pick(match scope {
            Scope::OffersRead => ("read offers", "odczytywać Twoje oferty"),
            Scope::OffersWrite => (
                "create and edit offers, change prices and stock",
                "tworzyć i edytować oferty, zmieniać ceny i stany magazynowe",
            ),
            Scope::OrdersRead => (
                "read orders and buyer data",
                "odczytywać zamówienia i dane kupujących",
            ),
            Scope::ShipmentsWrite => (
                "report shipments (buyer is notified)",
                "zgłaszać wysyłki (kupujący dostaje powiadomienie)",
            ),
            Scope::SettingsRead => ("read sales settings", "odczytywać ustawienia sprzedaży"),
            Scope::SettingsWrite => ("change sales settings", "zmieniać ustawienia sprzedaży"),
            Scope::OrdersWrite => ("change orders", "zmieniać zamówienia"),
            Scope::ShipmentsRead => ("read shipments", "odczytywać wysyłki"),
            Scope::ReturnsRead => ("read returns", "odczytywać zwroty"),
            Scope::ReturnsWrite => ("handle returns", "obsługiwać zwroty"),
            Scope::PricelistsRead => ("read price lists", "odczytywać cenniki"),
            Scope::PricelistsWrite => ("change price lists", "zmieniać cenniki"),
            Scope::PoliciesRead => ("read sales policies", "odczytywać zasady sprzedaży"),
            Scope::PoliciesWrite => ("change sales policies", "zmieniać zasady sprzedaży"),
            Scope::BillingRead => ("read your billing", "odczytywać rozliczenia"),
            Scope::Messaging => (
                "read and write messages to buyers",
                "czytać i pisać wiadomości do kupujących",
            ),
            Scope::ProfileRead => ("read your seller profile", "odczytywać profil sprzedawcy"),
        })
    }

    /// What a scope permits where its label says more; empty if the label is exact.
    pub(crate) const fn scope_meaning(&self, scope: Scope) -> &'static str {
        self.pick(match scope {
            Scope::OffersRead | Scope::OrdersRead | Scope::ShipmentsRead => ("", ""),
            Scope::OffersWrite => (
                "Changes price, stock, publication and your own reference number of existing offers. It cannot create offers.",
                "Zmienia cenę, stan magazynowy, publikację i Twój własny numer istniejących ofert. Nie może tworzyć nowych.",
            ),
            Scope::ShipmentsWrite => (
                "Also corrects the carrier and the tracking number of shipments (buyer is notified).",
                "Poprawia też przewoźnika i numer śledzenia wysyłek (kupujący dostaje powiadomienie).",
            ),
            Scope::SettingsRead => (
                "Reads the addresses to which your account's events are sent for the application (webhooks).",
                "Odczytuje adresy, na które aplikacja otrzymuje zdarzenia z Twojego konta (webhooki).",
            ),
            Scope::SettingsWrite => (
                "Sets the addresses to which your account's events are sent for the application (webhooks).",
                "Ustala adresy, na które aplikacja otrzymuje zdarzenia z Twojego konta (webhooki).",
            ),
            _ => (
                "For an announced feature: it permits nothing yet.",
                "Dla zapowiedzianej funkcji: na razie na nic nie pozwala.",
            ),
        })
    }

    pub(crate) const fn status(&self, status: ApplicationStatus) -> &'static str {
        self.pick(match status {
            ApplicationStatus::Pending => ("Pending", "Oczekująca"),
            ApplicationStatus::Active => ("Active", "Aktywna"),
            ApplicationStatus::Suspended => ("Suspended", "Zawieszona"),
        })
    }

    pub(crate) const fn purpose(&self, purpose: Purpose) -> &'static str {
        self.pick(match purpose {
            Purpose::OwnUse => ("Own use", "Na własny użytek"),
            Purpose::ForOtherSellers => ("For other sellers", "Dla innych sprzedawców"),
            Purpose::Other => ("Other", "Inne"),
        })
    }

    pub(crate) const fn client_type(&self, kind: ClientType) -> &'static str {
        self.pick(match kind {
            ClientType::Confidential => ("Confidential", "Poufna"),
            ClientType::Public => ("Public", "Publiczna"),
        })
    }

    pub(crate) const fn event(&self, event: WebhookEvent) -> &'static str {
        self.pick(match event {
            WebhookEvent::OrderCreated => ("Order placed", "Zamówienie złożone"),
            WebhookEvent::OrderPaid => ("Order paid", "Zamówienie opłacone"),
            WebhookEvent::OrderShipped => ("Order shipped", "Zamówienie wysłane"),
            WebhookEvent::OrderDelivered => ("Order delivered", "Zamówienie dostarczone"),
            WebhookEvent::OrderCancelled => ("Order cancelled", "Zamówienie anulowane"),
            WebhookEvent::OfferRejected => ("Offer rejected", "Oferta odrzucona"),
            WebhookEvent::ConnectionEnded => ("Connection ended", "Połączenie zakończone"),
        })
    }

    /// Why a webhook's receiver did not answer. An English reason follows it.
    pub(crate) const fn failure(&self, failure: &AttemptFailure) -> &'static str {
        self.pick(match failure {
            AttemptFailure::Dns => (
                "The host's name does not resolve (DNS).",
                "Nie można ustalić adresu hosta (DNS).",
            ),
            AttemptFailure::AddressRefused => (
                "The host has an address that deliveries do not go to, such as a private one.",
                "Host ma adres, na który nie wysyłamy, na przykład prywatny.",
            ),
            AttemptFailure::Connect => ("The host cannot be reached.", "Host jest nieosiągalny."),
            AttemptFailure::Refused => ("The host refused the connection.", "Host odrzucił połączenie."),
            AttemptFailure::TimedOut => ("There was no answer in time.", "Nie było odpowiedzi na czas."),
            AttemptFailure::Tls(_) => (
                "No secure connection could be made (TLS):",
                "Nie udało się nawiązać bezpiecznego połączenia (TLS):",
            ),
            AttemptFailure::Protocol(_) => (
                "The answer was not valid HTTP:",
                "Odpowiedź nie jest poprawnym HTTP:",
            ),
            AttemptFailure::Closed => (
                "The connection was closed before the answer.",
                "Połączenie zostało zamknięte przed odpowiedzią.",
            ),
            AttemptFailure::WorkerLost => (
                "The attempt was cut off on our side.",
                "Próba została przerwana po naszej stronie.",
            ),
        })
    }

    /// The meaning of a response status of the API.
    pub(crate) const fn http_status(&self, status: u16) -> &'static str {
        self.pick(match status {
            200..=299 => ("Successful", "Udane"),
            400 => (
                "A header, parameter or field is wrong",
                "Błędny nagłówek, parametr lub pole",
            ),
            401 => ("No valid token", "Brak ważnego tokenu"),
            403 => ("The token lacks a permission", "Token nie ma uprawnienia"),
            404 => ("There is no such thing", "Nie ma takiego zasobu"),
            409 => ("The state does not allow it", "Konflikt z obecnym stanem danych"),
            412 => ("It was changed in the meantime", "Zmieniono to w międzyczasie"),
            422 => (
                "The request cannot be carried out as it is",
                "Nie można wykonać żądania w tej postaci",
            ),
            429 => ("Over the limit", "Przekroczony limit"),
            500..=599 => ("A failure on our side", "Błąd po naszej stronie"),
            _ => ("Other", "Inne"),
        })
    }

    /// A sentence for a rule that a value breaks.
    pub(crate) fn rule(&self, rule: &impl Rule) -> String {
        match self.language {
            Language::English => rule.english(),
            Language::Polish => format!("{}.", rule.polish()),
        }
    }

    /// The same for the redirect address on this line.
    pub(crate) fn address(&self, line: usize, rule: &impl Rule) -> String {
        match self.language {
            Language::English => format!("Address {line}: {rule}."),
            Language::Polish => format!("Pozycja {line}: {}.", rule.polish()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_of_two_minutes_or_more_is_told_in_minutes() {
        for (seconds, english, polish) in [
            (119, "119 s", "119 s"),
            (120, "2 minutes", "2 minuty"),
            (241, "5 minutes", "5 minut"),
            (720, "12 minutes", "12 minut"),
            (1_320, "22 minutes", "22 minuty"),
            (3_600, "60 minutes", "60 minut"),
        ] {
            let text = |texts: &Texts| (texts.failures.too_many)(seconds).1;
            assert_eq!(text(&ENGLISH), format!("Wait {english}, then try again."));
            assert_eq!(text(&POLISH), format!("Odczekaj {polish} i spróbuj ponownie."));
        }
    }
}
