//! The kinds of faults: their names, what each hits, and on which store it is possible.

use ringback_testkit::Role;
use ringback_testkit::history::FaultClass;
use strum::VariantArray as _;

use crate::store_kind::StoreKind;

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[derive(strum::EnumString, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Kind {
    KillApi,
    KillCarrier,
    KillNotifier,
    KillUp,
    StopApi,
    StopCarrier,
    StopNotifier,
    StopUp,
    BlockedLog,
    KillRedis,
    StopRedis,
    FullMemory,
    FlushFunctions,
    Cut,
    Swallow,
    Blackhole,
    Delay,
    HalfClose,
    CutReplies,
    OneWay,
    Hold,
    FullDisk,
    #[strum(serialize = "receiver-500")]
    Receiver500,
    ReceiverHangs,
    ReceiverResets,
    ReceiverSlow,
    WipedRedis,
    OlderRedis,
    TornRedis,
    ClockBack,
    ClockAhead,
    SilentNames,
    KillMaster,
    StopMaster,
    FailOver,
    KillSentinel,
    MoveSlot,
    Partition,
    NoMajority,
}

/// What is done to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProcessFault {
    Kill,
    Stop,
    BlockLog,
}

/// What a fault is done to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Process(ProcessFault, Option<Role>),
    Redis,
    /// The connections of processes to Redis, to the nodes of a cluster, or to sentinels and what they watch.
    Network,
    Disk,
    Receiver,
    Data,
    Clock,
    /// The names that processes look up.
    Names,
    Master,
    Sentinel,
    Slot,
    /// The connections between servers.
    Links,
}

impl Kind {
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The kinds that are possible on a store.
    pub fn of(store: StoreKind) -> impl Iterator<Item = Self> {
        Self::VARIANTS.iter().copied().filter(move |kind| kind.is_possible(store))
    }

    fn is_possible(self, store: StoreKind) -> bool {
        match self.target() {
            Target::Process(_, Some(role)) => (role == Role::Up) == (store == StoreKind::Embedded),
            Target::Redis | Target::Data | Target::Clock => store == StoreKind::Redis,
            Target::Network => store != StoreKind::Embedded,
            Target::Disk => store == StoreKind::Embedded,
            // Sentinels that find each other again may replace a master that notifiers still reach.
            Target::Links if self == Self::NoMajority => store == StoreKind::Cluster,
            Target::Master | Target::Links => matches!(store, StoreKind::Cluster | StoreKind::Sentinel),
            Target::Sentinel => store == StoreKind::Sentinel,
            Target::Slot => store == StoreKind::Cluster,
            Target::Process(_, None) | Target::Receiver | Target::Names => true,
        }
    }

    /// Whether the fault can remove accepted jobs. Such kinds are made only if they are asked for.
    pub const fn is_lossy(self) -> bool {
        matches!(self.target(), Target::Data)
    }

    pub(crate) const fn target(self) -> Target {
        use ProcessFault::{BlockLog, Kill, Stop};
        match self {
            Self::KillApi => Target::Process(Kill, Some(Role::Api)),
            Self::KillCarrier => Target::Process(Kill, Some(Role::Carrier)),
            Self::KillNotifier => Target::Process(Kill, Some(Role::Notifier)),
            Self::KillUp => Target::Process(Kill, Some(Role::Up)),
            Self::StopApi => Target::Process(Stop, Some(Role::Api)),
            Self::StopCarrier => Target::Process(Stop, Some(Role::Carrier)),
            Self::StopNotifier => Target::Process(Stop, Some(Role::Notifier)),
            Self::StopUp => Target::Process(Stop, Some(Role::Up)),
            Self::BlockedLog => Target::Process(BlockLog, None),
            Self::KillRedis | Self::StopRedis | Self::FullMemory | Self::FlushFunctions => Target::Redis,
            Self::Cut
            | Self::Swallow
            | Self::Blackhole
            | Self::Delay
            | Self::HalfClose
            | Self::CutReplies
            | Self::OneWay
            | Self::Hold => Target::Network,
            Self::FullDisk => Target::Disk,
            Self::Receiver500 | Self::ReceiverHangs | Self::ReceiverResets | Self::ReceiverSlow => {
                Target::Receiver
            }
            Self::WipedRedis | Self::OlderRedis | Self::TornRedis => Target::Data,
            Self::ClockBack | Self::ClockAhead => Target::Clock,
            Self::SilentNames => Target::Names,
            Self::KillMaster | Self::StopMaster | Self::FailOver => Target::Master,
            Self::KillSentinel => Target::Sentinel,
            Self::MoveSlot => Target::Slot,
            Self::Partition | Self::NoMajority => Target::Links,
        }
    }

    /// The number of the schedule that makes this kind: 0 for faults of processes, 1 for all others.
    pub(crate) const fn schedule(self) -> u64 {
        match self.target() {
            Target::Process(..) => 0,
            Target::Redis
            | Target::Network
            | Target::Disk
            | Target::Receiver
            | Target::Data
            | Target::Clock
            | Target::Names
            | Target::Master
            | Target::Sentinel
            | Target::Slot
            | Target::Links => 1,
        }
    }

    pub(crate) const fn class(self) -> FaultClass {
        match self.target() {
            Target::Process(..) => FaultClass::Process,
            Target::Redis
            | Target::Disk
            | Target::Data
            | Target::Clock
            | Target::Master
            | Target::Sentinel
            | Target::Slot => FaultClass::Store,
            Target::Links => FaultClass::Split,
            Target::Network | Target::Names => FaultClass::Network,
            Target::Receiver => FaultClass::Receiver,
        }
    }
}
