//! Black-box tests against the running binary.
