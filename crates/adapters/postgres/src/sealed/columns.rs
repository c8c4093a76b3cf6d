//! The columns of sealed values: where they lie, how their rows are ordered, and what their values are bound to.
//!
//! The bindings are those under which the values are sealed, written in SQL: see `sealing`, `webhooks::subscription_row` and,
//! among the use cases, `shown_once`.

use kernel::Purpose;

use super::SealedColumn;

/// A column, as SQL.
pub(super) struct Place {
    pub(super) table: &'static str,
    pub(super) column: &'static str,
    /// What a value is bound to.
    pub(super) binding: &'static str,
    /// The table's primary key.
    pub(super) first: Part,
    pub(super) second: Part,
}

/// A part of a primary key.
pub(super) struct Part {
    pub(super) key: &'static str,
    /// It as text, in the same order.
    pub(super) text: &'static str,
    /// What makes of that text the part again, before and after it.
    pub(super) open: &'static str,
    pub(super) close: &'static str,
    /// Before the first one there is, as text.
    pub(super) beginning: &'static str,
}

impl Part {
    const fn id(key: &'static str, text: &'static str) -> Self {
        Self {
            key,
            text,
            open: "",
            close: "::uuid",
            beginning: "00000000-0000-0000-0000-000000000000",
        }
    }

    const fn text(text: &'static str) -> Self {
        Self {
            key: text,
            text,
            open: "",
            close: "",
            beginning: "",
        }
    }
}

const SECRETS: Place = Place {
    table: "subscriptions",
    column: "secret",
    binding: "uuid_send(seller_id) || uuid_send(id)",
    first: Part::id("seller_id", "seller_id::text"),
    second: Part::id("id", "id::text"),
};

const REMEMBERED: Place = Place {
    table: "idempotency",
    column: "body",
    // Each part after its length in eight bytes.
    binding: "int8send(16) || uuid_send(seller_id) || int8send(octet_length(key)) || convert_to(key, 'UTF8') \
              || int8send(octet_length(fingerprint)) || fingerprint || int8send(16) || uuid_send(fence)",
    first: Part::id("seller_id", "seller_id::text"),
    second: Part::text("key"),
};

const LINKS: Place = Place {
    table: "account_mails",
    column: "url",
    binding: "uuid_send(id)",
    first: Part::id("id", "id::text"),
    // The key has one part.
    second: Part::text("''::text"),
};

const FLASHES: Place = Place {
    table: "flashes",
    column: "sealed",
    binding: "session_hash || uuid_send(form)",
    first: Part {
        key: "session_hash",
        text: "encode(session_hash, 'hex')",
        open: "decode(",
        close: ", 'hex')",
        beginning: "",
    },
    second: Part::id("form", "form::text"),
};

impl SealedColumn {
    /// Table and column.
    pub const fn name(self) -> &'static str {
        match self {
            Self::WebhookSecrets => "subscriptions.secret",
            Self::RememberedBodies => "idempotency.body",
            Self::MailedLinks => "account_mails.url",
            Self::Flashes => "flashes.sealed",
        }
    }

    pub(super) const fn purpose(self) -> Purpose {
        match self {
            Self::WebhookSecrets => Purpose::WebhookSecret,
            Self::RememberedBodies => Purpose::RememberedBody,
            Self::MailedLinks => Purpose::MailedLink,
            Self::Flashes => Purpose::Flash,
        }
    }

    pub(super) const fn place(self) -> &'static Place {
        match self {
            Self::WebhookSecrets => &SECRETS,
            Self::RememberedBodies => &REMEMBERED,
            Self::MailedLinks => &LINKS,
            Self::Flashes => &FLASHES,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_called_what_they_are() {
        for column in SealedColumn::ALL {
            let place = column.place();
            assert_eq!(column.name(), format!("{}.{}", place.table, place.column));
        }
    }
}
