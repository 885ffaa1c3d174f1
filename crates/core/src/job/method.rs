//! The method of a callback (RFC 9110, section 9).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The method of a callback.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[derive(strum::Display, strum::EnumString, strum::IntoStaticStr, strum::VariantArray, strum::VariantNames)]
#[serde(rename_all = "UPPERCASE")]
#[strum(serialize_all = "UPPERCASE")]
pub enum CallbackMethod {
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
    pub const ALLOWED: &'static str = "POST, GET, PUT, PATCH or DELETE";

    /// Whether requests with this method have a body. One with another method has no meaning that all servers share
    /// (RFC 9110, sections 9.3.1 and 9.3.5).
    pub const fn has_body(self) -> bool {
        match self {
            Self::Post | Self::Put | Self::Patch => true,
            Self::Get | Self::Delete => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use strum::VariantNames as _;

    use super::*;

    #[test]
    fn errors_name_all_methods() {
        assert!(CallbackMethod::VARIANTS.iter().all(|name| CallbackMethod::ALLOWED.contains(name)));
        assert!("get".parse::<CallbackMethod>().is_err() && "HEAD".parse::<CallbackMethod>().is_err());
    }
}
