//! The table of error codes: name, status, and the message for a seller.
//!
//! The codes of `/v1` are the contract's (Errors); the last three belong to the back office alone (D98).

use actix_web::http::StatusCode;

macro_rules! codes {
    ($($(#[$doc:meta])+ $name:ident, $text:literal, $status:ident, $user_message:expr;)+) => {
        /// Why a request was refused.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code {
            $($(#[$doc])+ $name,)+
        }

        impl Code {
            /// Every code, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// The `code` of an entry.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)+
                }
            }

            pub const fn status(self) -> StatusCode {
                match self {
                    $(Self::$name => StatusCode::$status,)+
                }
            }

            /// The `userMessage` of an entry, in Polish; only if a seller can do something about the error
            /// (D15).
            pub const fn user_message(self) -> Option<&'static str> {
                match self {
                    $(Self::$name => $user_message,)+
                }
            }
        }
    };
}

codes! {
    /// The `User-Agent` is absent or does not match the pattern.
    MissingUserAgent, "missing_user_agent", BAD_REQUEST, None;
    /// A header, query parameter or body field has a wrong type, format or value.
    ValidationError, "validation_error", BAD_REQUEST, None;
    /// There is no valid token: it is absent, unknown, expired or revoked, or its application is not in good
    /// standing.
    Unauthorized, "unauthorized", UNAUTHORIZED, None;
    /// The token lacks the operation's scope.
    InsufficientScope, "insufficient_scope", FORBIDDEN, None;
    /// The resource does not exist or belongs to another seller; the answer is the same.
    NotFound, "not_found", NOT_FOUND, None;
    /// The order is already shipped or delivered.
    AlreadyShipped, "already_shipped", CONFLICT, Some("To zamówienie zostało już wysłane.");
    /// The order is not paid.
    OrderUnpaid, "order_unpaid", CONFLICT,
        Some("Zamówienie nie jest jeszcze opłacone. Wyślij je po zaksięgowaniu płatności.");
    /// The order is cancelled.
    OrderCancelled, "order_cancelled", CONFLICT,
        Some("Zamówienie zostało anulowane, więc nie można go wysłać.");
    /// The order contains another seller's items.
    MultiSellerOrder, "multi_seller_order", CONFLICT,
        Some("Zamówienie zawiera też produkty innych sprzedawców. Jego wysyłką zajmuje się obsługa serwisu.");
    /// The shipment is not in transit, was corrected three times, or is the marketplace's.
    ShipmentLocked, "shipment_locked", CONFLICT, Some("Danych tej przesyłki nie można już poprawić.");
    /// A request with the same idempotency key is still running.
    IdempotencyInProgress, "idempotency_in_progress", CONFLICT, None;
    /// The subscription has ended: the seller has disconnected the application.
    WebhookInactive, "webhook_inactive", CONFLICT, None;
    /// An attempt of the delivery is under way.
    DeliveryInProgress, "delivery_in_progress", CONFLICT, None;
    /// The resource is in another state than the one that `If-Match` names.
    PreconditionFailed, "precondition_failed", PRECONDITION_FAILED, None;
    /// The request sets a price, but the offer has no price to change.
    NoPriceRow, "no_price_row", UNPROCESSABLE_ENTITY,
        Some("Ta oferta nie ma jeszcze ceny w złotych. Ustal ją najpierw w serwisie.");
    /// The request sets the stock, but the offer has no inventory level.
    NoInventoryRow, "no_inventory_row", UNPROCESSABLE_ENTITY,
        Some("Ta oferta nie ma jeszcze stanu magazynowego. Ustal go najpierw w serwisie.");
    /// The adjusted stock would be below 0 or above 2147483647.
    StockOutOfRange, "stock_out_of_range", UNPROCESSABLE_ENTITY,
        Some("Stan magazynowy po tej zmianie byłby ujemny albo za duży.");
    /// The request sets the status, but only moderation may change it now.
    StatusLockedByModeration, "status_locked_by_moderation", UNPROCESSABLE_ENTITY,
        Some("Oferta czeka na moderację albo została odrzucona, więc nie można teraz zmienić jej statusu.");
    /// The idempotency key was used with another request.
    IdempotencyKeyReused, "idempotency_key_reused", UNPROCESSABLE_ENTITY, None;
    /// The application has the maximum number of subscriptions for this seller.
    WebhookLimitReached, "webhook_limit_reached", UNPROCESSABLE_ENTITY,
        Some("Osiągnięto limit 20 powiadomień (webhooków). Usuń jedno z nich, aby dodać nowe.");
    /// The application has used up its requests for this window.
    RateLimited, "rate_limited", TOO_MANY_REQUESTS, None;
    /// A failure that the client did not cause.
    InternalError, "internal_error", INTERNAL_SERVER_ERROR, None;
    /// Back office: something with that name exists, or the present state does not allow the transition.
    Conflict, "conflict", CONFLICT, None;
    /// Back office: the seller has set the price manually.
    PriceIsManual, "price_is_manual", CONFLICT, None;
    /// Back office: an offer has less stock than the order needs.
    InsufficientStock, "insufficient_stock", CONFLICT, None;
}
