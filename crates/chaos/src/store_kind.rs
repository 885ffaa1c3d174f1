//! The kinds of store that a run can be made on.

/// A kind of store, with the processes that go with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::EnumString, strum::VariantArray)]
#[strum(serialize_all = "lowercase")]
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
