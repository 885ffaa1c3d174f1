//! A node of a cluster, as another one describes it in a line of CLUSTER NODES.

use super::answer::Address;

pub(super) struct Node<'a> {
    pub(super) id: &'a str,
    /// `None` if it is not known.
    pub(super) address: Option<Address>,
    pub(super) flags: &'a str,
    pub(super) master: &'a str,
    /// When it last answered, in ms since 1970.
    pub(super) answered: u64,
    pub(super) has_slots: bool,
}

impl<'a> Node<'a> {
    /// Reads a line; `None` if it has too few fields.
    pub(super) fn read(line: &'a str) -> Option<Self> {
        let fields: Vec<_> = line.split_whitespace().collect();
        let [id, address, flags, master, _, answered, _, _, slots @ ..] = &fields[..] else { return None };
        let address = address.split(['@', ',']).next().and_then(|address| address.rsplit_once(':'));
        Some(Self {
            id,
            address: address.and_then(|(host, port)| Some((host.to_owned(), port.parse().ok()?))),
            flags,
            master,
            answered: answered.parse().unwrap_or(0),
            has_slots: !slots.is_empty(),
        })
    }

    pub(super) fn is(&self, flag: &str) -> bool {
        self.flags.split(',').any(|one| one == flag)
    }
}
