//! Accounts: sellers, their sessions, links, passwords and personal tokens, operator tokens, the audit log, mails about accounts.

mod account;
mod audit;
mod password;
mod personal_token;
mod ports;
mod rule;
mod session;

pub use account::{Email, NewSeller, PasswordHash, Seller, SellerName, is_same_address};
pub use audit::{Action, Actor, AuditEntry, AuditFilter};
pub use password::NewPassword;
pub use personal_token::{MAX_PERSONAL_TOKENS, PersonalTokenRequest, ValidPersonalToken, token_name};
pub use ports::{
    Account, AccountMail, AccountReader, AccountStore, HasherBusy, HourlyUsage, NewOperatorToken,
    OperatorTokenRecord, PasswordHasher, PersonalToken, SignedIn, UsageCount, UsageKey, UsageLog,
};
pub use rule::Rule;
pub use session::{Link, LinkKind, LinkSecret, SESSION_IDLE, SESSION_LIFETIME, Session};

#[cfg(any(test, feature = "mocks"))]
pub use ports::{MockAccountReader, MockPasswordHasher, MockUsageLog};
