//! Applications, scopes, tokens and accounts: who may call the API, and as whom.

mod account;
mod account_ports;
mod application;
mod audit;
mod authorization;
mod client_auth;
mod client_id;
mod connection;
mod consent;
mod credential;
mod edit;
mod exchange;
mod family;
mod link;
mod password;
mod personal_token;
mod pkce;
mod ports;
mod principal;
mod rate;
mod refresh;
mod registration;
mod scope;
mod secret;
mod session;
mod standing;
mod status;
mod usage;

pub use account::{Email, NewSeller, PasswordHash, Seller, SellerName, is_same_address};
pub use account_ports::{
    Account, AccountMail, AccountStore, AuditReader, OperatorTokenRow, OperatorTokens, Overcrowded,
    PanelReader, PasswordHasher, PersonalToken, SellerReader, SignedIn, UsageLog,
};
pub use application::{Application, ApplicationEvent, ClientType, Purpose, RateLimit, Registrar};
pub use audit::{Action, Actor, AuditEntry};
pub use authorization::{
    AuthorizationQuery, AuthorizationRefusal, AuthorizationRequest, RedirectError, answer_to,
};
pub use client_auth::{InvalidClient, authenticate};
pub use client_id::ClientId;
pub use connection::{ConnectedApplication, Generation};
pub use consent::{Consent, ConsentId, ConsentRefusal, ConsentTicket, Decision, Viewer, granted, may_ask};
pub use credential::{Credential, CredentialKind};
pub use edit::{ApplicationEdit, RawEdit};
pub use exchange::{Code, CodePresented, GrantRefusal, Verdict};
pub use family::{
    FamiliesOf, FamilyKind, Grant, IssuedToken, NewClientToken, NewToken, ScopeRefused, client_credentials,
};
pub use link::{documentation_link, redirect_uri};
pub use password::NewPassword;
pub use personal_token::{PERSONAL_TOKENS_MAX, PersonalTokenRequest, PersonalTokenRules};
pub use pkce::{CodeChallenge, CodeVerifier};
pub use ports::{
    ApplicationDirectory, ApplicationFilter, ApplicationReader, ApplicationStore, ClientTokens, Gate,
    GrantReader, GrantStore, NewConsent, RateCounter,
};
pub use principal::{Admission, Principal, Quota};
pub use rate::{Count, Limiter, Subject};
pub use refresh::{NewPair, RefreshToken};
pub use registration::{RawRegistration, Registration, application_name};
pub use scope::{Scope, ScopeSet, UnknownScope};
pub use secret::{
    BearerToken, ClientSecret, FamilyId, OperatorToken, Secret, SecretHash, SecretKind, TokenKey, TokenKind,
};
pub use session::{BrowserSecret, Link, LinkKind, LinkSecret, SESSION_IDLE, SESSION_LIFETIME, Session};
pub use standing::{Family, Standing};
pub use status::{ApplicationStatus, ImpossibleMove};
pub use usage::{HourlyUsage, UsageCount, UsageKey};

#[cfg(any(test, feature = "mocks"))]
pub use account_ports::{
    MockAuditReader, MockOperatorTokens, MockPanelReader, MockPasswordHasher, MockSellerReader, MockUsageLog,
};
#[cfg(any(test, feature = "mocks"))]
pub use ports::{
    MockApplicationDirectory, MockApplicationReader, MockClientTokens, MockGate, MockGrantReader,
    MockRateCounter,
};
