//! Checks the version of the schema of an archive. `postgres` and `sqlite` make the schema.

/// The version that this build makes and reads.
pub(crate) const VERSION: i32 = 1;

/// Checks the version of a database, which is 0 without a schema.
///
/// # Errors
/// Why the database cannot be used: it has no schema yet, or one of another version.
pub(crate) fn check(version: i32) -> Result<(), String> {
    match version {
        VERSION => Ok(()),
        0 => Err("it has no schema yet, which an archiver makes".to_owned()),
        other => Err(format!(
            "it has version {other} of the schema, and this build knows version {VERSION}; use another database, or the build that made it"
        )),
    }
}
