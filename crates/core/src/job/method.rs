//! The method of a callback (RFC 9110, section 9).

use std::fmt;

use serde::{Deserialize, Serialize};

/// The method of a callback.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CallbackMethod {
    /// The usual one.
    #[default]
    Post,
    /// Without a body.
    Get,
    /// With a body, if the job has one.
    Put,
    /// With a body, if the job has one (RFC 5789).
    Patch,
    /// Without a body.
    Delete,
}

impl CallbackMethod {
    /// All methods.
    pub const ALL: [Self; 5] = [Self::Post, Self::Get, Self::Put, Self::Patch, Self::Delete];
    /// What is allowed, for errors.
    pub const ALLOWED: &'static str = "POST, GET, PUT, PATCH or DELETE";

    /// The name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Post => "POST",
            Self::Get => "GET",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }

    /// The method with a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }

    /// Whether its requests have a body. That of others has no meaning that all servers share (RFC 9110, sections 9.3.1
    /// and 9.3.5).
    pub const fn has_body(self) -> bool {
        match self {
            Self::Post | Self::Put | Self::Patch => true,
            Self::Get | Self::Delete => false,
        }
    }
}

impl fmt::Display for CallbackMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_known_by_their_names() {
        for method in CallbackMethod::ALL {
            assert_eq!(CallbackMethod::from_name(&method.to_string()), Some(method));
            assert!(CallbackMethod::ALLOWED.contains(method.name()));
        }
        assert_eq!((CallbackMethod::from_name("get"), CallbackMethod::from_name("HEAD")), (None, None));
    }
}
