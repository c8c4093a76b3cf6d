//! Applications, scopes, grants and tokens: the authorization to call the API.

mod application;
mod authorization;
mod client_id;
mod consent;
mod edit;
mod exchange;
mod family;
mod link;
mod pkce;
mod ports;
mod principal;
mod rate;
mod registration;
mod rule;
mod scope;
mod secret;
mod status;

pub use application::{
    Application, ApplicationEvent, ClientType, InvalidClient, Purpose, RateLimit, Registrar, authenticate,
};
pub use authorization::{
    AuthorizationQuery, AuthorizationRefusal, AuthorizationRequest, RedirectError, redirect_url,
};
pub use client_id::ClientId;
pub use consent::{
    ConnectedApplication, Consent, ConsentId, ConsentRefusal, ConsentTicket, Decision, Denial, Viewer,
    granted,
};
pub use edit::{ApplicationEdit, ChangedSince, RawEdit, Shown};
pub use exchange::{
    Code, CodeExchange, Exchange, GrantRefusal, NewPair, Presented, RefreshToken, StoredCredential, Verdict,
};
pub use family::{
    FamiliesOf, Family, FamilyKind, FamilyStatus, Grant, NewClientToken, ScopeRefused, client_credentials,
};
pub use link::{documentation_link, redirect_uri};
pub use pkce::{CodeChallenge, CodeVerifier};
pub use ports::{
    AccessToken, ApplicationDirectory, ApplicationReader, ApplicationStore, Gate, GrantReader, GrantStore,
    Holder, ListedApplication, NewConsent, RateCounter, TokenIssuer,
};
pub use principal::{Admission, DeadToken, Principal, Quota, TokenEnd};
pub use rate::{Count, Limiter, Subject};
pub use registration::{RawRegistration, Registration, application_name, scopes};
pub use rule::Rule;
pub use scope::{Scope, ScopeSet, UnknownScope};
pub use secret::{
    BearerToken, BrowserSecret, ClientSecret, Credential, CredentialKind, FamilyId, FamilySecret,
    FamilySecretKind, OperatorToken, Secret, SecretHash, SecretKind, TokenKey, TokenKind,
};
pub use status::{ApplicationStatus, ImpossibleTransition, Transition, TransitionRefusal};

#[cfg(any(test, feature = "mocks"))]
pub use ports::{MockApplicationReader, MockGrantReader, MockRateCounter, MockTokenIssuer};
