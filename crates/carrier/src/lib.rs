//! carrier
