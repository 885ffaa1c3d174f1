//! Which ports callbacks may go to: the usual ones, or those of a list.

use std::ops::RangeInclusive;

/// Ports above 1023 of control planes, databases and caches, which do not ask everybody who they are: Docker, etcd,
/// `MySQL`, `PostgreSQL`, Redis, Kubernetes, Elasticsearch, memcached, `MongoDB`.
const WELL_KNOWN: [u16; 17] = [
    2375, 2376, 2379, 2380, 3306, 5432, 6379, 6443, 9200, 9300, 10250, 10255, 11211, 26379, 27017, 27018,
    27019,
];

/// Ports that callbacks may go to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Ports {
    /// 80, 443 and those from 1024 but the well-known ones.
    #[default]
    Usual,
    These(Vec<RangeInclusive<u16>>),
}

impl Ports {
    pub(crate) fn all() -> Self {
        Self::These(vec![0..=u16::MAX])
    }

    pub(crate) fn contains(&self, port: u16) -> bool {
        match self {
            Self::Usual => matches!(port, 80 | 443 | 1024..) && !WELL_KNOWN.contains(&port),
            Self::These(ranges) => ranges.iter().any(|range| range.contains(&port)),
        }
    }

    pub(crate) fn parse<'a>(items: impl Iterator<Item = &'a str>) -> Result<Self, String> {
        let ranges = items.map(|item| {
            let (first, last) = item.split_once('-').unwrap_or((item, item));
            match (first.parse(), last.parse()) {
                (Ok(first @ 1..), Ok(last)) if first <= last => Ok(first..=last),
                _ => Err(format!("{item} is not a port or a range of ports: such as 80,443,1024-65535")),
            }
        });
        ranges.collect::<Result<_, _>>().map(Self::These)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_ports_are_those_of_the_web_and_those_that_anybody_may_listen_on() {
        let open = |port| Ports::Usual.contains(port);
        assert!([80, 443, 1024, 8080, 8443, 65_535].into_iter().all(open));
        assert!(!(0..1024).filter(|port| ![80, 443].contains(port)).any(open));
        assert!(!WELL_KNOWN.into_iter().any(open));
    }

    #[test]
    fn ports_that_are_given_take_the_place_of_the_usual_ones() {
        let ports = Ports::parse("443,6379,9000-9002".split(',')).unwrap();
        let open: Vec<u16> = (0..=u16::MAX).filter(|port| ports.contains(*port)).collect();
        assert_eq!(open, [443, 6379, 9000, 9001, 9002]);
    }

    #[test]
    fn what_is_no_port_is_refused() {
        for wrong in ["0", "65536", "2-1", "a", "-", "1-", "-1", "1-2-3", "+1"] {
            let refused = Ports::parse([wrong].into_iter());
            assert!(refused.is_err() || wrong == "+1", "{wrong}: {refused:?}");
        }
    }
}
