//! The one table of error codes: what each is called, which status it is answered with, what a seller is told.
//!
//! The codes of `/v1` are those of the contract (Errors); the last three are the back office's own (D98).

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

            /// The status of a response whose entries have this code.
            pub const fn status(self) -> StatusCode {
                match self {
                    $(Self::$name => StatusCode::$status,)+
                }
            }

            /// The `userMessage` of an entry, in Polish: there only where a seller can do something about it (D15).
            pub const fn user_message(self) -> Option<&'static str> {
                match self {
                    $(Self::$name => $user_message,)+
                }
            }
        }
    };
}

codes! {
    /// The `User-Agent` is absent or does not follow the pattern.
    MissingUserAgent, "missing_user_agent", BAD_REQUEST, None;
    /// A header, a query parameter or a body field has a wrong type, format or value.
    ValidationError, "validation_error", BAD_REQUEST, None;
    /// There is no token that is known, unexpired, unrevoked and of an application in good standing.
    Unauthorized, "unauthorized", UNAUTHORIZED, None;
    /// The token lacks the scope of the operation.
    InsufficientScope, "insufficient_scope", FORBIDDEN, None;
    /// The resource does not exist, or belongs to somebody else: the two are not told apart.
    NotFound, "not_found", NOT_FOUND, None;
    /// The order already has a shipment.
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
    /// A request with the same idempotency key is still being executed.
    IdempotencyInProgress, "idempotency_in_progress", CONFLICT, None;
    /// A price was sent for an offer that has none to change.
    NoPriceRow, "no_price_row", UNPROCESSABLE_ENTITY,
        Some("Ta oferta nie ma jeszcze ceny w złotych. Ustal ją najpierw w serwisie.");
    /// A stock was sent for an offer that has no inventory level.
    NoInventoryRow, "no_inventory_row", UNPROCESSABLE_ENTITY,
        Some("Ta oferta nie ma jeszcze stanu magazynowego. Ustal go najpierw w serwisie.");
    /// A status was sent for an offer whose status is moderation's to change.
    StatusLockedByModeration, "status_locked_by_moderation", UNPROCESSABLE_ENTITY,
        Some("Oferta czeka na moderację albo została odrzucona, więc nie można teraz zmienić jej statusu.");
    /// The idempotency key was used for another request.
    IdempotencyKeyReused, "idempotency_key_reused", UNPROCESSABLE_ENTITY, None;
    /// The application has as many subscriptions for this seller as it may have.
    WebhookLimitReached, "webhook_limit_reached", UNPROCESSABLE_ENTITY,
        Some("Osiągnięto limit 20 powiadomień (webhooków). Usuń jedno z nich, aby dodać nowe.");
    /// The application has made as many requests in this window as it may make.
    RateLimited, "rate_limited", TOO_MANY_REQUESTS, None;
    /// Something failed that the client cannot help.
    InternalError, "internal_error", INTERNAL_SERVER_ERROR, None;
    /// Back office: something of that name exists, or the move is impossible in the present state.
    Conflict, "conflict", CONFLICT, None;
    /// Back office: the seller has set the price by hand.
    PriceIsManual, "price_is_manual", CONFLICT, None;
    /// Back office: an offer has fewer pieces than the order asks for.
    InsufficientStock, "insufficient_stock", CONFLICT, None;
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    #[test]
    fn the_table_is_the_contracts() {
        let mut table = String::new();
        for code in Code::ALL {
            let status = code.status().as_u16();
            writeln!(
                table,
                "{status} {} | {}",
                code.as_str(),
                code.user_message().unwrap_or("-")
            )
            .unwrap();
        }
        insta::assert_snapshot!(table);
    }
}
