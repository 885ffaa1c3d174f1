//! Failing destinations: a text about each, by tenant and origin. This table does not read the texts.

use super::rows::{Access, Rows, Writing};
use crate::error::Result;

pub(crate) struct Failing<A: Access>(pub(crate) Rows<A, &'static str, &'static str>);

impl<A: Access> Failing<A> {
    pub(crate) fn get(&self, name: &str) -> Result<Option<String>> {
        self.0.read(name, str::to_owned)
    }

    pub(crate) fn all(&self) -> Result<Vec<(String, String)>> {
        let mut all = Vec::new();
        self.0.each(|name, text| {
            all.push((name.to_owned(), text.to_owned()));
            Ok(())
        })?;
        Ok(all)
    }
}

impl Failing<Writing<'_>> {
    /// Stores the text of a name; `None` removes it.
    pub(crate) fn set(&mut self, name: &str, text: Option<&str>) -> Result<()> {
        match text {
            Some(text) => self.0.insert(name, text),
            None => self.0.remove(name).map(drop),
        }
    }
}
