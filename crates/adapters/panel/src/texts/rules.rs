//! The domain's rules for the fields of a form, in the words of a page. A rule that lacks a Polish text does
//! not compile.

use std::fmt::Display;

/// A rule that a value breaks. Its own text is English, worded for somebody who writes JSON.
pub(crate) trait Rule: Display {
    /// A sentence.
    fn english(&self) -> String;

    /// Without a full stop.
    fn polish(&self) -> String;
}

impl Rule for oauth::Rule {
    fn english(&self) -> String {
        match self {
            Self::OneOf(_) => "Choose one.".to_owned(),
            Self::AnyScope => "Tick at least one.".to_owned(),
            Self::TermsAccepted => "The terms of the API have to be accepted.".to_owned(),
            _ => web::to_sentence(self),
        }
    }

    fn polish(&self) -> String {
        let text = match self {
            Self::Name => {
                "Podaj od 3 do 40 znaków: litery bez znaków diakrytycznych, cyfry, „.”, „_”, „-” i pojedyncze spacje między nimi"
            }
            Self::NameReserved => "Wybierz inną nazwę: ta oznacza tokeny osobiste sprzedawców",
            Self::MaxCharacters(most) => return format!("Wpisz najwyżej {most} znaków"),
            Self::Https => {
                "Podaj pełny adres zaczynający się od https:// i nazwy hosta, w ASCII, bez odstępów i ukośników wstecznych"
            }
            Self::NoFragment => "Adres nie może mieć fragmentu (części po #)",
            Self::NoUserInformation => "Adres nie może mieć nazwy użytkownika ani hasła przed nazwą hosta",
            Self::PublicHost => "Adres nie może wskazywać localhost ani adresu, który nie jest publiczny",
            Self::Unique => "Ten adres już jest na liście",
            Self::MaxAddresses(most) => return format!("Podaj najwyżej {most} adresów"),
            Self::OneOf(_) => "Wybierz jedną z możliwości",
            Self::KnownScope(_) => "Wybierz uprawnienia z listy",
            Self::AnyScope => "Zaznacz co najmniej jedno uprawnienie",
            Self::TermsAccepted => "Zaakceptuj warunki korzystania z API",
        };
        text.to_owned()
    }
}

impl Rule for accounts::Rule {
    fn english(&self) -> String {
        match self {
            Self::HardToGuess => {
                "Choose a password that is harder to guess: this is one of the first that anybody would try."
                    .to_owned()
            }
            Self::FutureExpiry => {
                "Give a day in the future, or none for a token that does not expire.".to_owned()
            }
            Self::Scopes(rule) => rule.english(),
            _ => web::to_sentence(self),
        }
    }

    fn polish(&self) -> String {
        match self {
            Self::MinCharacters(least) => format!("Hasło musi mieć co najmniej {least} znaków"),
            Self::MaxBytes(most) => format!("Hasło może mieć najwyżej {most} bajtów"),
            Self::HardToGuess => {
                "Wybierz hasło trudniejsze do odgadnięcia: to należy do pierwszych, które każdy by wypróbował"
                    .to_owned()
            }
            Self::TokenName(most) => format!("Podaj od 1 do {most} znaków, w tym widoczny, bez sterujących"),
            Self::FutureExpiry => {
                "Podaj dzień w przyszłości albo zostaw puste pole dla tokenu, który nie wygasa".to_owned()
            }
            Self::Scopes(rule) => rule.polish(),
        }
    }
}
