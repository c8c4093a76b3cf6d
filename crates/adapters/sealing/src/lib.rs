//! AES-256-GCM under configured keys, with rotation, and the system's clock and randomness.
