//! On which store a run is made.

/// A kind of store, with the processes that go with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreKind {
    /// Redis, with two processes of each role.
    Redis,
    /// One `ringback up` on an embedded store.
    Embedded,
}

impl StoreKind {
    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Redis => "redis",
            Self::Embedded => "embedded",
        }
    }
}
