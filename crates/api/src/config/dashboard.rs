//! `Dashboard`: the setting that switches the dashboard on and off.

use std::str::FromStr;

/// Whether the dashboard is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dashboard {
    /// At `/ui/`.
    On,
    /// Not at all: its paths are unknown.
    Off,
}

impl FromStr for Dashboard {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "on" => Ok(Self::On),
            "off" => Ok(Self::Off),
            _ => Err("must be on or off"),
        }
    }
}
