//! Ids: a newtype per kind of thing, so that they cannot be confused.

use std::str::FromStr;

use uuid::Uuid;

/// Defines an id over a UUID. New ones are UUIDv7 (RFC 9562), made with [`crate::Randomness::uuid`], so that
/// rows created together are close together in an index.
#[macro_export]
macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(::uuid::Uuid);

        impl $name {
            /// The id as a UUID.
            pub const fn uuid(self) -> ::uuid::Uuid {
                self.0
            }
        }

        impl From<::uuid::Uuid> for $name {
            fn from(id: ::uuid::Uuid) -> Self {
                Self(id)
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                ::std::fmt::Display::fmt(&self.0, f)
            }
        }

        impl ::std::str::FromStr for $name {
            type Err = $crate::Invalid;

            /// Accepts only the canonical form (lowercase, hyphens), so that each id has one spelling.
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                $crate::canonical_uuid(text).map(Self)
            }
        }
    };
}

uuid_id! {
    /// A seller's account on the marketplace.
    SellerId
}

uuid_id! {
    /// An offer, unique together with its seller.
    OfferId
}

/// Parses a UUID in its canonical form: 36 characters, lowercase hexadecimal, hyphens.
#[doc(hidden)]
pub fn canonical_uuid(text: &str) -> Result<Uuid, crate::Invalid> {
    let id = Uuid::from_str(text).ok();
    id.filter(|id| id.to_string() == text).ok_or_else(|| {
        crate::Invalid::new("must be a lowercase UUID such as 0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e")
    })
}

/// Who reads a seller's data. Reads are shared out by seller and by application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reader {
    pub seller: SellerId,
    /// The client id of the application that asks; None if the marketplace or the seller does.
    pub application: Option<Uuid>,
}

impl Reader {
    /// A seller in the panel. All of them together share as the callers of one application do, under an id that none has.
    pub fn in_panel(seller: SellerId) -> Self {
        Self {
            seller,
            application: Some(Uuid::nil()),
        }
    }
}

impl From<SellerId> for Reader {
    fn from(seller: SellerId) -> Self {
        Self {
            seller,
            application: None,
        }
    }
}
