//! Makes the help texts of flags that set a field of a request from the API's description of the field.

use ringback_wire::{JobRequest, PolicyRequest, Request, about};

/// The most sentences of a help text.
const SENTENCES: usize = 2;

/// The help of a flag that sets a field of a job.
pub(crate) fn job(field: &str) -> String {
    help::<JobRequest>(field)
}

/// The help of a flag that sets a field of a policy.
pub(crate) fn policy(field: &str) -> String {
    help::<PolicyRequest>(field)
}

/// Appends to a help text a sentence about the form of the value on the command line.
pub(crate) fn written(help: String, form: &str) -> String {
    help + ". " + form
}

/// The first two sentences of the description of a field, with names of fields written as flags. Panics if the request
/// has no such field.
fn help<R: Request>(field: &str) -> String {
    let about = about::<R>(field).expect("the request has this field");
    let mut ends = about.match_indices(". ").map(|(end, _)| end);
    let about = ends.nth(SENTENCES - 1).map_or(about, |end| &about[..end]);
    let flag = |name: &str| format!("--{}", name.replace('_', "-"));
    let part = |(place, part): (usize, &str)| {
        let is_field = place % 2 == 1 && R::NAMES.contains(&part);
        if is_field { flag(part) } else { part.to_owned() }
    };
    about.trim_end_matches('.').split('`').enumerate().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_help_text_is_short_and_names_flags() {
        assert_eq!(
            job("url"),
            "The callback URL. With neither --url nor --ttr the URL of the topic's policy is used"
        );
        assert_eq!(job("context"), "Values that are sent with every attempt");
    }
}
