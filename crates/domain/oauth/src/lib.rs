//! Applications, scopes, tokens and accounts: who may call the API, and as whom.

mod account;
mod application;
mod client_auth;
mod client_id;
mod family;
mod link;
mod personal_token;
mod ports;
mod principal;
mod rate;
mod registration;
mod scope;
mod secret;
mod status;

pub use account::{Email, NewSeller, PasswordHash, Seller, SellerName};
pub use application::{Application, ApplicationEvent, ClientType, Purpose, Registrar};
pub use client_auth::{InvalidClient, authenticate};
pub use client_id::ClientId;
pub use family::{FamilyKind, Grant, IssuedToken, NewToken, ScopeRefused, client_credentials};
pub use link::{documentation_link, redirect_uri};
pub use personal_token::{PERSONAL_TOKENS_MAX, PersonalTokenRequest, PersonalTokenRules};
pub use ports::{
    ApplicationReader, ApplicationStore, Gate, OperatorTokenRow, OperatorTokens, PasswordHasher, RateCounter,
    SellerReader, SellerStore, TokenStore,
};
pub use principal::{Admission, Principal, Quota};
pub use rate::{Count, Limiter, Subject};
pub use registration::{RawRegistration, Registration, application_name};
pub use scope::{Scope, ScopeSet, UnknownScope};
pub use secret::{
    BearerToken, ClientSecret, FamilyId, OperatorToken, Secret, SecretHash, SecretKind, TokenKey, TokenKind,
};
pub use status::{ApplicationStatus, ImpossibleMove};

#[cfg(any(test, feature = "mocks"))]
pub use ports::{
    MockApplicationReader, MockApplicationStore, MockGate, MockOperatorTokens, MockPasswordHasher,
    MockRateCounter, MockSellerReader, MockSellerStore, MockTokenStore,
};
