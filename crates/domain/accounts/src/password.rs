//! The rules for a new password (NIST SP 800-63B §5.1.1.2: length counts, composition does not).

use kernel::Redacted;

use crate::Rule;

/// Minimum number of characters.
const MIN_CHARACTERS: usize = 10;
/// Maximum number of bytes, so that a client cannot cause unbounded hashing work.
const MAX_BYTES: usize = 256;

/// The most common passwords that are long enough to be accepted otherwise.
const COMMON: [&str; 12] = [
    "1234567890",
    "0123456789",
    "0987654321",
    "qwertyuiop",
    "qwertyuiop123",
    "password123",
    "password1234",
    "passw0rd123",
    "haslo12345",
    "haslo123456",
    "zaq12wsxcde3",
    "1q2w3e4r5t",
];

/// A valid new password. Never printed.
#[derive(Debug, Clone)]
pub struct NewPassword(Redacted<String>);

impl NewPassword {
    /// Validates a password for the account with this e-mail address.
    pub fn new(text: String, email: &str) -> Result<Self, Rule> {
        if text.chars().count() < MIN_CHARACTERS {
            return Err(Rule::MinCharacters(MIN_CHARACTERS));
        }
        if text.len() > MAX_BYTES {
            return Err(Rule::MaxBytes(MAX_BYTES));
        }
        let lower = text.to_lowercase();
        let mut characters = text.chars();
        let first = characters.next();
        let monotonous = characters.all(|c| Some(c) == first);
        let (local, _) = email.split_once('@').unwrap_or((email, ""));
        if monotonous
            || COMMON.contains(&lower.as_str())
            || lower == email.to_lowercase()
            || lower == local.to_lowercase()
        {
            return Err(Rule::HardToGuess);
        }
        Ok(Self(Redacted(text)))
    }

    /// The plain text, for the hasher.
    pub fn reveal(&self) -> &str {
        &self.0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_long_and_guessable_passwords_are_refused() {
        let new = |text: &str| NewPassword::new(text.to_owned(), "anna.kowalska@example.com");
        for fine in ["dziesięć z", "correct horse battery", &"xy".repeat(128)] {
            assert_eq!(new(fine).unwrap().reveal(), fine);
            assert_eq!(format!("{:?}", new(fine).unwrap()), "NewPassword(…)");
        }
        let refused =
            "123456789 aaaaaaaaaaaa Password123 anna.kowalska Anna.Kowalska@Example.com ANNA.KOWALSKA";
        for refused in refused.split_whitespace().chain(["", &"xy".repeat(129)]) {
            assert!(new(refused).is_err(), "{refused}");
        }
    }
}
