//! The text of each value that pages show, in both languages.

use oauth::{ApplicationStatus, ClientType, Purpose, Scope};
use offers::OfferStatus;
use orders::OrderStatus;
use webhooks::{AttemptFailure, DeliveryState, WebhookEvent};

use super::{Language, Texts};

values! {
    /// The permission that a scope gives; the English text is the contract's.
    scope: Scope {
        Scope::OffersRead => "read offers", "odczytywać Twoje oferty";
        Scope::OffersWrite =>
            "create and edit offers, change prices and stock",
            "tworzyć i edytować oferty, zmieniać ceny i stany magazynowe";
        Scope::OrdersRead => "read orders and buyer data", "odczytywać zamówienia i dane kupujących";
        Scope::ShipmentsWrite =>
            "report shipments (buyer is notified)",
            "zgłaszać wysyłki (kupujący dostaje powiadomienie)";
        Scope::SettingsRead => "read sales settings", "odczytywać ustawienia sprzedaży";
        Scope::SettingsWrite => "change sales settings", "zmieniać ustawienia sprzedaży";
        Scope::OrdersWrite => "change orders", "zmieniać zamówienia";
        Scope::ShipmentsRead => "read shipments", "odczytywać wysyłki";
        Scope::ReturnsRead => "read returns", "odczytywać zwroty";
        Scope::ReturnsWrite => "handle returns", "obsługiwać zwroty";
        Scope::PricelistsRead => "read price lists", "odczytywać cenniki";
        Scope::PricelistsWrite => "change price lists", "zmieniać cenniki";
        Scope::PoliciesRead => "read sales policies", "odczytywać zasady sprzedaży";
        Scope::PoliciesWrite => "change sales policies", "zmieniać zasady sprzedaży";
        Scope::BillingRead => "read your billing", "odczytywać rozliczenia";
        Scope::Messaging => "read and write messages to buyers", "czytać i pisać wiadomości do kupujących";
        Scope::ProfileRead => "read your seller profile", "odczytywać profil sprzedawcy";
    }
    /// What a scope permits where its label says more; empty if the label is exact.
    scope_meaning: Scope {
        Scope::OffersRead | Scope::OrdersRead | Scope::ShipmentsRead => "", "";
        Scope::OffersWrite =>
            "Changes price, stock, publication and your own reference number of existing offers. It cannot create offers.",
            "Zmienia cenę, stan magazynowy, publikację i Twój własny numer istniejących ofert. Nie może tworzyć nowych.";
        Scope::ShipmentsWrite =>
            "Also corrects the carrier and the tracking number of shipments (buyer is notified).",
            "Poprawia też przewoźnika i numer śledzenia wysyłek (kupujący dostaje powiadomienie).";
        Scope::SettingsRead =>
            "Reads the addresses to which your account's events are sent for the application (webhooks).",
            "Odczytuje adresy, na które aplikacja otrzymuje zdarzenia z Twojego konta (webhooki).";
        Scope::SettingsWrite =>
            "Sets the addresses to which your account's events are sent for the application (webhooks).",
            "Ustala adresy, na które aplikacja otrzymuje zdarzenia z Twojego konta (webhooki).";
        _ =>
            "For an announced feature: it permits nothing yet.",
            "Dla zapowiedzianej funkcji: na razie na nic nie pozwala.";
    }
    status: ApplicationStatus {
        ApplicationStatus::Pending => "Pending", "Oczekująca";
        ApplicationStatus::Active => "Active", "Aktywna";
        ApplicationStatus::Suspended => "Suspended", "Zawieszona";
    }
    purpose: Purpose {
        Purpose::OwnUse => "Own use", "Na własny użytek";
        Purpose::ForOtherSellers => "For other sellers", "Dla innych sprzedawców";
        Purpose::Other => "Other", "Inne";
    }
    client_type: ClientType {
        ClientType::Confidential => "Confidential", "Poufna";
        ClientType::Public => "Public", "Publiczna";
    }
    event: WebhookEvent {
        WebhookEvent::OrderCreated => "Order placed", "Zamówienie złożone";
        WebhookEvent::OrderPaid => "Order paid", "Zamówienie opłacone";
        WebhookEvent::OrderShipped => "Order shipped", "Zamówienie wysłane";
        WebhookEvent::OrderDelivered => "Order delivered", "Zamówienie dostarczone";
        WebhookEvent::OrderCancelled => "Order cancelled", "Zamówienie anulowane";
        WebhookEvent::OfferRejected => "Offer rejected", "Oferta odrzucona";
        WebhookEvent::ConnectionEnded => "Connection ended", "Połączenie zakończone";
    }
    offer_status: OfferStatus {
        OfferStatus::Published => "Published", "Opublikowana";
        OfferStatus::Draft => "Draft", "Szkic";
        OfferStatus::Proposed => "Awaiting moderation", "Czeka na moderację";
        OfferStatus::Rejected => "Rejected", "Odrzucona";
    }
    order_status: OrderStatus {
        OrderStatus::Pending => "Not paid", "Nieopłacone";
        OrderStatus::Processing => "To be shipped", "Do wysłania";
        OrderStatus::Shipped => "Shipped", "Wysłane";
        OrderStatus::Delivered => "Delivered", "Dostarczone";
        OrderStatus::Cancelled => "Cancelled", "Anulowane";
    }
    delivery_state: &DeliveryState {
        DeliveryState::Queued => "Queued", "W kolejce";
        DeliveryState::Waiting { .. } => "Will be repeated", "Do powtórzenia";
        DeliveryState::Delivered { .. } => "Delivered", "Dostarczona";
        DeliveryState::Exhausted { .. } => "Given up", "Zaniechana";
        DeliveryState::Stopped { .. } => "Stopped", "Zatrzymana";
    }
    /// Why a webhook's receiver did not answer. An English reason follows it.
    failure: &AttemptFailure {
        AttemptFailure::Dns =>
            "The host's name does not resolve (DNS).",
            "Nie można ustalić adresu hosta (DNS).";
        AttemptFailure::AddressRefused =>
            "The host has an address that deliveries do not go to, such as a private one.",
            "Host ma adres, na który nie wysyłamy, na przykład prywatny.";
        AttemptFailure::Connect => "The host cannot be reached.", "Host jest nieosiągalny.";
        AttemptFailure::Refused => "The host refused the connection.", "Host odrzucił połączenie.";
        AttemptFailure::TimedOut => "There was no answer in time.", "Nie było odpowiedzi na czas.";
        AttemptFailure::Tls(_) =>
            "No secure connection could be made (TLS):",
            "Nie udało się nawiązać bezpiecznego połączenia (TLS):";
        AttemptFailure::Protocol(_) => "The answer was not valid HTTP:", "Odpowiedź nie jest poprawnym HTTP:";
        AttemptFailure::Closed =>
            "The connection was closed before the answer.",
            "Połączenie zostało zamknięte przed odpowiedzią.";
        AttemptFailure::WorkerLost =>
            "The attempt was cut off on our side.",
            "Próba została przerwana po naszej stronie.";
    }
    /// The meaning of a response status of the API.
    http_status: u16 {
        200..=299 => "Successful", "Udane";
        400 => "A header, parameter or field is wrong", "Błędny nagłówek, parametr lub pole";
        401 => "No valid token", "Brak ważnego tokenu";
        403 => "The token lacks a permission", "Token nie ma uprawnienia";
        404 => "There is no such thing", "Nie ma takiego zasobu";
        409 => "The state does not allow it", "Konflikt z obecnym stanem danych";
        412 => "It was changed in the meantime", "Zmieniono to w międzyczasie";
        422 => "The request cannot be carried out as it is", "Nie można wykonać żądania w tej postaci";
        429 => "Over the limit", "Przekroczony limit";
        500..=599 => "A failure on our side", "Błąd po naszej stronie";
        _ => "Other", "Inne";
    }
}
