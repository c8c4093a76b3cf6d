//! The domain's reasons to refuse a value, in the words of a page.

use crate::language::Language;

/// The beginning of each domain reason and its Polish translation. A test checks the table against the domain.
const REASONS: &[(&str, &str)] = &[
    (
        "must be 3 to 40 characters",
        "Podaj od 3 do 40 znaków: litery bez znaków diakrytycznych, cyfry, „.”, „_”, „-” i pojedyncze spacje między nimi",
    ),
    (
        "must be another name",
        "Wybierz inną nazwę: ta oznacza tokeny osobiste sprzedawców",
    ),
    ("must have at most 2000 characters", "Wpisz najwyżej 2000 znaków"),
    ("must have at most 2048 characters", "Wpisz najwyżej 2048 znaków"),
    (
        "must have at most 256 bytes",
        "Hasło może mieć najwyżej 256 bajtów",
    ),
    (
        "must have at least 10 characters",
        "Hasło musi mieć co najmniej 10 znaków",
    ),
    (
        "must be harder to guess",
        "Wybierz hasło trudniejsze do odgadnięcia: to jest jednym z pierwszych, których każdy by spróbował",
    ),
    (
        "must be a full address",
        "Podaj pełny adres zaczynający się od https:// i nazwy hosta, w ASCII, bez odstępów i ukośników wstecznych",
    ),
    (
        "must not have a fragment",
        "Adres nie może mieć fragmentu (części po #)",
    ),
    (
        "must not have user information",
        "Adres nie może mieć nazwy użytkownika ani hasła przed nazwą hosta",
    ),
    (
        "must not point to localhost",
        "Adres nie może wskazywać localhost ani adresu, który nie jest publiczny",
    ),
    ("must not be given twice", "Ten adres już jest na liście"),
    ("must be at most 20", "Podaj najwyżej 20 adresów"),
    (
        "must name at least one scope",
        "Zaznacz co najmniej jedno uprawnienie",
    ),
    ("must be a known scope", "Wybierz uprawnienia z listy"),
    ("must be one of", "Wybierz jedną z możliwości"),
    (
        "must be true: the API terms",
        "Zaakceptuj warunki korzystania z API",
    ),
    ("must have 1 to 100 characters", "Podaj od 1 do 100 znaków"),
    (
        "must lie in the future",
        "Podaj dzień w przyszłości albo zostaw puste pole dla tokenu, który nie wygasa",
    ),
];

/// Replacements for reasons that the domain words for somebody who writes JSON, reworded for somebody who fills in a form.
const PLAINER: &[(&str, &str)] = &[
    ("must be one of", "Choose one."),
    ("must name at least one scope", "Tick at least one."),
    (
        "must be true: the API terms",
        "The terms of the API have to be accepted.",
    ),
    (
        "must lie in the future",
        "Give a day in the future, or none for a token that does not expire.",
    ),
];

/// A sentence for the reason.
pub(super) fn sentence(language: Language, reason: &str) -> String {
    match language {
        Language::English => {
            beginning(PLAINER, reason).map_or_else(|| web::to_sentence(reason), str::to_owned)
        }
        Language::Polish => format!("{}.", predicate(language, reason)),
    }
}

/// The reason without a full stop; the domain's own words if there is no translation.
pub(super) fn predicate(language: Language, reason: &str) -> &str {
    match language {
        Language::English => reason,
        Language::Polish => beginning(REASONS, reason).unwrap_or(reason),
    }
}

fn beginning(table: &[(&str, &'static str)], reason: &str) -> Option<&'static str> {
    let found = table.iter().find(|(beginning, _)| reason.starts_with(beginning));
    found.map(|(_, text)| *text)
}

#[cfg(test)]
mod tests {
    use accounts::{NewPassword, PersonalTokenRequest};
    use chrono::{DateTime, Utc};
    use kernel::Violations;
    use oauth::RawRegistration;

    use super::*;

    fn reasons(violations: &Violations) -> Vec<String> {
        violations.iter().map(|(_, reason)| reason.to_string()).collect()
    }

    #[test]
    fn every_reason_of_the_domain_has_a_polish_text() {
        let address = |address: &str| RawRegistration {
            redirect_uris: vec![
                address.to_owned(),
                "https://a.example".into(),
                "https://a.example".into(),
            ],
            documentation_url: format!("https://a.example/{}", "x".repeat(3000)),
            name: "Personal tokens".to_owned(),
            description: Some("x".repeat(2001)),
            scopes: vec!["x".to_owned()],
            ..RawRegistration::default()
        };
        let mut all = Vec::new();
        for raw in [
            RawRegistration::default(),
            address("http://a.example"),
            address("https://a.example/#x"),
            address("https://u@a.example/"),
            address("https://localhost"),
            RawRegistration {
                redirect_uris: vec![String::new(); 21],
                ..RawRegistration::default()
            },
        ] {
            all.extend(reasons(&raw.check().unwrap_err()));
        }
        for password in ["short", "1234567890", &"x y".repeat(100)] {
            all.push(
                NewPassword::new(password.to_owned(), "a@b")
                    .unwrap_err()
                    .to_string(),
            );
        }
        let now = DateTime::<Utc>::UNIX_EPOCH;
        let token = PersonalTokenRequest {
            name: String::new(),
            scopes: Vec::new(),
            expires_at: Some(now),
        };
        all.extend(reasons(&token.check(now).unwrap_err()));
        for reason in &all {
            assert_ne!(predicate(Language::Polish, reason), reason);
        }
        for (beginning, _) in REASONS {
            assert!(
                all.iter().any(|reason| reason.starts_with(beginning)),
                "{beginning}"
            );
        }
    }
}
