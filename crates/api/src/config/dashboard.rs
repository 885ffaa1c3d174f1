//! `Dashboard`: the setting that switches the dashboard on and off.

use ringback_core::names::must_be;

/// Whether the dashboard is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumString, strum::VariantNames)]
#[strum(serialize_all = "lowercase", parse_err_ty = String, parse_err_fn = must_be::<Self>)]
pub enum Dashboard {
    /// At `/ui/`.
    On,
    /// Not at all: its paths are unknown.
    Off,
}
