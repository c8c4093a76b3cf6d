//! What the pages say. A text that a language lacks does not compile.

mod deliveries;
mod english;
mod polish;
mod polish_reasons;

use oauth::{ApplicationStatus, ClientType, Purpose, Scope};

use deliveries::Deliveries;
pub(crate) use english::ENGLISH;
pub(crate) use polish::POLISH;

/// Every text in one language.
pub(crate) struct Texts {
    pub(crate) frame: Frame,
    pub(crate) sign_in: SignIn,
    pub(crate) sign_out: SignOut,
    pub(crate) passwords: Passwords,
    pub(crate) links: Links,
    pub(crate) consent: Consent,
    pub(crate) applications: Applications,
    pub(crate) application: OneApplication,
    pub(crate) form: ApplicationForm,
    pub(crate) usage: Usage,
    pub(crate) once: Once,
    pub(crate) tokens: Tokens,
    pub(crate) connections: Connections,
    pub(crate) deliveries: Deliveries,
    pub(crate) notices: Notices,
    pub(crate) failures: Failures,
    /// What a scope lets somebody do.
    pub(crate) scope: fn(Scope) -> &'static str,
    pub(crate) status: fn(ApplicationStatus) -> &'static str,
    pub(crate) purpose: fn(Purpose) -> &'static str,
    pub(crate) client_type: fn(ClientType) -> &'static str,
    /// A sentence for the reason why a value is refused, given as the domain says it.
    pub(crate) reason: fn(&str) -> String,
    /// The same, for the element with this number of a list.
    pub(crate) element: fn(usize, &str) -> String,
}

/// Around every page.
pub(crate) struct Frame {
    pub(crate) skip: &'static str,
    pub(crate) navigation: &'static str,
    pub(crate) applications: &'static str,
    pub(crate) tokens: &'static str,
    pub(crate) connections: &'static str,
    pub(crate) deliveries: &'static str,
    pub(crate) account: &'static str,
    pub(crate) sign_out: &'static str,
    pub(crate) documentation: &'static str,
    pub(crate) panel: &'static str,
    pub(crate) error_prefix: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) optional: &'static str,
    pub(crate) back: &'static str,
}

/// Signing in.
pub(crate) struct SignIn {
    pub(crate) title: &'static str,
    pub(crate) lead: &'static str,
    pub(crate) lead_consent: &'static str,
    pub(crate) email: &'static str,
    pub(crate) password: &'static str,
    pub(crate) submit: &'static str,
    pub(crate) forgotten: &'static str,
    pub(crate) wrong: &'static str,
}

/// Signing out.
pub(crate) struct SignOut {
    pub(crate) title: &'static str,
    pub(crate) text: &'static str,
    pub(crate) submit: &'static str,
    pub(crate) everywhere_title: &'static str,
    pub(crate) everywhere_text: &'static str,
    pub(crate) everywhere_submit: &'static str,
}

/// Changing a password, and having it reset.
pub(crate) struct Passwords {
    pub(crate) account_title: &'static str,
    pub(crate) signed_in_as: &'static str,
    pub(crate) change_title: &'static str,
    pub(crate) current: &'static str,
    pub(crate) new: &'static str,
    pub(crate) new_hint: &'static str,
    pub(crate) change_submit: &'static str,
    pub(crate) change_note: &'static str,
    pub(crate) none_yet: &'static str,
    pub(crate) current_wrong: &'static str,
    pub(crate) unchanged: &'static str,
    pub(crate) forgotten_title: &'static str,
    pub(crate) forgotten_lead: &'static str,
    pub(crate) forgotten_submit: &'static str,
    pub(crate) sent_title: &'static str,
    pub(crate) sent_text: &'static str,
    pub(crate) back_to_sign_in: &'static str,
}

/// One-time links.
pub(crate) struct Links {
    pub(crate) invitation_title: &'static str,
    pub(crate) invitation_lead: &'static str,
    pub(crate) reset_title: &'static str,
    pub(crate) reset_lead: &'static str,
    pub(crate) set_submit: &'static str,
    pub(crate) sign_in_title: &'static str,
    pub(crate) sign_in_lead: &'static str,
    pub(crate) sign_in_submit: &'static str,
    pub(crate) account: &'static str,
}

/// The screen of consent.
pub(crate) struct Consent {
    pub(crate) title: &'static str,
    pub(crate) heading: fn(&str) -> String,
    pub(crate) run_by: &'static str,
    pub(crate) documentation: &'static str,
    pub(crate) account: &'static str,
    pub(crate) may: &'static str,
    pub(crate) dangerous: &'static str,
    pub(crate) warning: &'static str,
    pub(crate) after: fn(&str) -> String,
    pub(crate) revocable: &'static str,
    pub(crate) approve: &'static str,
    pub(crate) deny: &'static str,
    pub(crate) another: &'static str,
}

/// The list of applications.
pub(crate) struct Applications {
    pub(crate) title: &'static str,
    pub(crate) lead: &'static str,
    pub(crate) empty: &'static str,
    pub(crate) register: &'static str,
    pub(crate) status: &'static str,
    pub(crate) purpose: &'static str,
    pub(crate) registered: &'static str,
}

/// The page of an application.
pub(crate) struct OneApplication {
    pub(crate) status_title: &'static str,
    pub(crate) pending: &'static str,
    pub(crate) active_own_use: &'static str,
    pub(crate) active: &'static str,
    pub(crate) suspended: &'static str,
    pub(crate) credentials: &'static str,
    pub(crate) client_id: &'static str,
    pub(crate) client_type: &'static str,
    pub(crate) secret_title: &'static str,
    pub(crate) secret_text: &'static str,
    pub(crate) rotate: &'static str,
    pub(crate) public_text: &'static str,
    pub(crate) settings: &'static str,
    pub(crate) narrowing: &'static str,
    pub(crate) save: &'static str,
    pub(crate) delete_title: &'static str,
    pub(crate) delete_text: &'static str,
    pub(crate) delete: &'static str,
    pub(crate) confirm_title: fn(&str) -> String,
    pub(crate) confirm_text: &'static str,
    pub(crate) cancel: &'static str,
}

/// The fields of an application.
pub(crate) struct ApplicationForm {
    pub(crate) title: &'static str,
    pub(crate) lead: &'static str,
    pub(crate) name: &'static str,
    pub(crate) name_hint: &'static str,
    pub(crate) name_taken: &'static str,
    pub(crate) description: &'static str,
    pub(crate) description_hint: &'static str,
    pub(crate) documentation_url: &'static str,
    pub(crate) documentation_hint: &'static str,
    pub(crate) purpose: &'static str,
    pub(crate) purpose_hint: &'static str,
    pub(crate) client_type: &'static str,
    pub(crate) client_type_hint: &'static str,
    pub(crate) redirect_uris: &'static str,
    pub(crate) redirect_hint: &'static str,
    pub(crate) scopes: &'static str,
    pub(crate) scopes_hint: &'static str,
    pub(crate) reserved: &'static str,
    pub(crate) accept_terms: &'static str,
    pub(crate) submit: &'static str,
}

/// What an application has called.
pub(crate) struct Usage {
    pub(crate) title: &'static str,
    pub(crate) limit: &'static str,
    pub(crate) limit_text: fn(u64, u32) -> String,
    pub(crate) none: &'static str,
    pub(crate) status: &'static str,
    pub(crate) meaning: &'static str,
    pub(crate) calls: &'static str,
    pub(crate) hour: &'static str,
    pub(crate) fine: &'static str,
    pub(crate) errors: &'static str,
    pub(crate) by_hour: &'static str,
    pub(crate) of_status: fn(u16) -> &'static str,
}

/// What is shown once.
pub(crate) struct Once {
    pub(crate) registered: &'static str,
    pub(crate) rotated: &'static str,
    pub(crate) token: &'static str,
    pub(crate) warning: &'static str,
    pub(crate) public: &'static str,
    pub(crate) client_id: &'static str,
    pub(crate) client_secret: &'static str,
    pub(crate) token_label: &'static str,
    pub(crate) to_application: &'static str,
    pub(crate) to_tokens: &'static str,
}

/// Personal tokens.
pub(crate) struct Tokens {
    pub(crate) title: &'static str,
    pub(crate) lead: &'static str,
    pub(crate) empty: &'static str,
    pub(crate) name: &'static str,
    pub(crate) name_hint: &'static str,
    pub(crate) scopes: &'static str,
    pub(crate) scopes_hint: &'static str,
    pub(crate) made: &'static str,
    pub(crate) expires: &'static str,
    pub(crate) never: &'static str,
    pub(crate) revoke: &'static str,
    pub(crate) issue_title: &'static str,
    pub(crate) expires_at: &'static str,
    pub(crate) expires_hint: &'static str,
    pub(crate) not_a_day: &'static str,
    pub(crate) issue: &'static str,
    pub(crate) too_many: &'static str,
}

/// Connected applications.
pub(crate) struct Connections {
    pub(crate) title: &'static str,
    pub(crate) lead: &'static str,
    pub(crate) empty: &'static str,
    pub(crate) run_by: &'static str,
    pub(crate) may: &'static str,
    pub(crate) since: &'static str,
    pub(crate) used: &'static str,
    pub(crate) never: &'static str,
    pub(crate) documentation: &'static str,
    pub(crate) disconnect: &'static str,
    pub(crate) note: &'static str,
}

/// What was done.
pub(crate) struct Notices {
    pub(crate) saved: &'static str,
    pub(crate) deleted: &'static str,
    pub(crate) revoked: &'static str,
    pub(crate) disconnected: &'static str,
    pub(crate) password_set: &'static str,
    pub(crate) password_changed: &'static str,
    pub(crate) signed_out: &'static str,
    pub(crate) signed_out_everywhere: &'static str,
}

/// A title and what to do about it.
pub(crate) type Message = (&'static str, &'static str);

/// What went wrong.
pub(crate) struct Failures {
    pub(crate) not_found: Message,
    pub(crate) stale_form: Message,
    pub(crate) malformed: Message,
    pub(crate) too_many: fn(u64) -> (&'static str, String),
    pub(crate) unknown_consent: Message,
    pub(crate) expired_consent: Message,
    pub(crate) decided_consent: Message,
    pub(crate) others_consent: Message,
    pub(crate) dead_link: Message,
    pub(crate) form_used: Message,
    pub(crate) shown_before: Message,
    pub(crate) unavailable: Message,
    pub(crate) failed: Message,
    pub(crate) trace_id: &'static str,
    pub(crate) start: &'static str,
    pub(crate) open_anew: &'static str,
}
