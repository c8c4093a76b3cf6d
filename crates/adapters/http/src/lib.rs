//! The public listener: /v1 and /oauth.
