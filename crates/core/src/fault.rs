//! Crash points, for the tests of faults: places in the code where a test has the process killed, stopped or cut off
//! from its store.
//!
//! Only builds with debug assertions have them; in all others [`crash_point!`](crate::crash_point) and
//! [`is_cut!`](crate::is_cut) leave nothing behind, not even a name. The hook that the process installs at its
//! start decides what happens at a point; without a hook nothing happens.

#[cfg(debug_assertions)]
pub use self::enabled::{Hook, Reached, install, reach, reach_store};

/// A place where a test can have this process killed or stopped.
#[macro_export]
macro_rules! crash_point {
    ($name:literal) => {
        #[cfg(debug_assertions)]
        let _ = $crate::fault::reach($name);
    };
}

/// A crash point before or after a call of the store: whether to cut the connection. `false` without debug assertions.
#[macro_export]
macro_rules! is_cut {
    ($call:expr, $side:literal) => {{
        #[cfg(debug_assertions)]
        let is_cut = $crate::fault::reach_store($call, $side);
        #[cfg(not(debug_assertions))]
        let is_cut = false;
        is_cut
    }};
}

#[cfg(debug_assertions)]
mod enabled {
    use std::sync::OnceLock;

    static HOOK: OnceLock<Hook> = OnceLock::new();

    /// The function that is called with the name of a point when the process reaches it.
    pub type Hook = Box<dyn Fn(&str) -> Reached + Send + Sync>;

    /// How the process goes on after a point.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Reached {
        /// As if there were no point.
        GoesOn,
        /// As if the connection broke here.
        IsCut,
    }

    /// Sets the hook for the crash points. Only the first call in a process has an effect.
    pub fn install(hook: Hook) {
        // A second call would come from a second process in this one, which has the same environment.
        let _ = HOOK.set(hook);
    }

    pub fn reach(name: &'static str) -> Reached {
        HOOK.get().map_or(Reached::GoesOn, |hook| hook(name))
    }

    /// Calls the hook with `store.{call}.{side}`. Whether the connection is to be cut there; `false` without a hook.
    pub fn reach_store(call: &'static str, side: &'static str) -> bool {
        HOOK.get().is_some_and(|hook| hook(&format!("store.{call}.{side}")) == Reached::IsCut)
    }
}
