//! Enums whose variants have words: in rows, forms, paths and the contract.

/// Defines an enum by its table of words. The words are unique.
#[macro_export]
macro_rules! words {
    ($(#[$of_enum:meta])* $vis:vis enum $name:ident { $($(#[$of_variant:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$of_enum])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        $vis enum $name {
            $($(#[$of_variant])* $variant,)*
        }

        impl $name {
            /// All, in the order of the table.
            $vis const ALL: [Self; [$($word,)*].len()] = [$(Self::$variant,)*];

            /// The word.
            $vis const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            /// The one with this word.
            $vis fn parse(word: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|one| one.as_str() == word)
            }
        }
    };
}
