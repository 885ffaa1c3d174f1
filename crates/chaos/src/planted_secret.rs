//! Secrets that are planted in an installation, and the search for them.

use ringback_testkit::history::{Entry, History, Scan};

/// What all planted secrets contain.
pub(crate) const MARK: &str = "pl4nted-in-chaos";
/// The password of the store, which Redis takes because its user needs none.
pub(crate) const PASSWORD: &str = "pl4nted-in-chaos-password";

pub(crate) fn scan(text: &str, history: &History) {
    let (bytes, found) = (text.len() as u64, text.matches(MARK).count() as u64);
    history.write(&Entry::Scan(Scan { t: history.t(), bytes, found }));
}
