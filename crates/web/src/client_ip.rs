//! client_ip
