//! On which store a run is made.

/// A kind of store, with the processes that go with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreKind {
    /// Redis, with two processes of each role.
    Redis,
    /// A cluster of three masters with a replica each, with two processes of each role.
    Cluster,
    /// A master with two replicas and three sentinels, with two processes of each role.
    Sentinel,
    /// One `ringback up` on an embedded store.
    Embedded,
}

impl StoreKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Redis, Self::Cluster, Self::Sentinel, Self::Embedded];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Redis => "redis",
            Self::Cluster => "cluster",
            Self::Sentinel => "sentinel",
            Self::Embedded => "embedded",
        }
    }
}
