//! Computes how many replicas may take over from a master, from the answers of servers. A change is confirmed when each
//! of them has it: one that has it is not enough, because another one may be promoted. Makes no calls.
//!
//! Sentinels promote none that is down, that was silent for five seconds, or whose link to the master is down while
//! another one has more. The masters of a cluster elect none that most of them cannot reach.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

use super::server_answers::{Address, Heard, ListedReplica, Node, Replica};

/// A replica that its master lists and that was silent for at most this many seconds may take over, even if the sentinels
/// or nodes that elect do not know it yet.
const RECENT: u64 = 1;

/// `cluster-node-timeout` if it cannot be read: the default of servers.
pub(super) const NODE_TIMEOUT: Duration = Duration::from_secs(15);

/// The replicas that may take over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Candidates {
    /// The addresses. The master and those that elect use the same ones: sentinels take them from the master's list, and
    /// most nodes of clusters have one address for all.
    Named(BTreeSet<Address>),
    /// The number of candidates, if the nodes of a cluster and the master know a replica by different addresses.
    Counted(usize),
}

/// The replicas of a master of a cluster, by its answers.
#[derive(Debug)]
pub(super) struct OfCluster {
    pub(super) candidates: Candidates,
    /// Nodes that may replicate this master, or did a moment ago: all except those that have slots of their own, or
    /// replicate another node that has.
    pub(super) possible: BTreeSet<Address>,
}

/// The replicas of a server from which the number that must have a change follows.
#[derive(Debug)]
pub(super) struct Replicas {
    candidates: Candidates,
    /// Replicas that the master listed when it was asked, in whatever state.
    listed: BTreeSet<Address>,
    /// Replicas that the master has listed as ready then or later, and when it last did.
    ready: BTreeMap<Address, Instant>,
}

impl Replicas {
    pub(super) fn new(candidates: Candidates, listed: &[ListedReplica], now: Instant) -> Self {
        let addresses = listed.iter().map(|one| one.address.clone()).collect();
        let mut replicas = Self { candidates, listed: addresses, ready: BTreeMap::new() };
        replicas.see(listed, now);
        replicas
    }

    /// Adds the replicas that the master lists as ready now.
    pub(super) fn see(&mut self, listed: &[ListedReplica], now: Instant) {
        self.ready.extend(ready(listed).map(|address| (address, now)));
    }

    /// Adds candidates that sentinels have named since. Does nothing for counted ones.
    pub(super) fn name(&mut self, named: &BTreeSet<Address>) {
        match &mut self.candidates {
            Candidates::Named(known) => known.extend(named.iter().cloned()),
            Candidates::Counted(_) => {}
        }
    }

    /// Adds the replicas that were ready in `known` at `after` or later, since a new answer may not have them yet.
    pub(super) fn take_over(&mut self, known: &Self, after: Instant) {
        for (address, seen) in known.ready.iter().filter(|(_, seen)| **seen >= after) {
            self.ready.entry(address.clone()).or_insert(*seen);
        }
    }

    /// Removes ready replicas that are neither listed, nor were ready at `after` or later, nor are possible. `possible`
    /// counts only if candidates have addresses.
    pub(super) fn keep(&mut self, possible: &BTreeSet<Address>, after: Instant) {
        let is_named = matches!(self.candidates, Candidates::Named(_));
        self.ready.retain(|address, seen| {
            let is_new = *seen >= after || self.listed.contains(address);
            is_new || (is_named && possible.contains(address))
        });
    }

    /// Returns how many replicas must have a change. WAIT says how many have it, not which. So each ready replica counts
    /// in addition to the candidates: it may be separated from those that elect, together with the master, and confirm in
    /// place of a candidate. At least 1, so that no confirmed change is on the server alone.
    pub(super) fn required(&self) -> usize {
        let required = match &self.candidates {
            Candidates::Named(named) => {
                named.len() + self.ready.keys().filter(|address| !named.contains(*address)).count()
            }
            // Replicas that have come since are not candidates yet, so they count in addition.
            Candidates::Counted(count) => {
                let newcomers = self.ready.keys().filter(|address| !self.listed.contains(*address)).count();
                (*count).max(self.ready.len() - newcomers) + newcomers
            }
        };
        required.max(1)
    }
}

/// Returns the replicas that can confirm what is written now.
fn ready(listed: &[ListedReplica]) -> impl Iterator<Item = Address> {
    listed.iter().filter(|one| one.has_confirmed && one.lag <= RECENT).map(|one| one.address.clone())
}

/// Returns the candidates by these sentinels' answers, which name one master. `all` is the number of all sentinels.
///
/// A replica that the sentinels cannot reach is left out only if most of them have answered: the others may have elected
/// it. A replica without a link to the master, or that says that it is a master itself, as a former one does, is left
/// out only if all sentinels have answered and none doubts the master: while the master is away no replica has a link,
/// and while it is replaced the promoted replica is the first to say so. Until all sentinels follow, they list it as one.
pub(super) fn of_sentinels(heard: &[&Heard], all: usize) -> BTreeSet<Address> {
    let is_majority = heard.len() > all / 2;
    let is_quiet = heard.len() == all && !heard.iter().any(|one| one.doubts_master);
    let is_candidate = |replica: &&Replica| {
        let follows = replica.is_linked && !replica.says_master;
        (replica.is_reachable || !is_majority) && (follows || !is_quiet)
    };
    let of_one = |one: &&Heard| {
        let others = one.replicas.iter().filter(|replica| replica.address != one.master.address);
        others.filter(is_candidate).map(|replica| replica.address.clone()).collect::<Vec<_>>()
    };
    heard.iter().flat_map(of_one).collect()
}

/// Returns the candidates by a master's answer to CLUSTER NODES, and by the replicas that it lists. A replica that still
/// copies the data is not one. One that only this master cannot reach is: the other masters may elect it. One that most
/// masters cannot reach is not, once this master has had no answer of it for the node timeout too: the mark that it
/// failed can come late, when it is back already, and stays until its next answer.
pub(super) fn of_cluster(nodes: &str, listed: &[ListedReplica], timeout: Duration) -> OfCluster {
    let nodes: Vec<Node<'_>> = nodes.lines().filter_map(Node::read).collect();
    let own = nodes.iter().find(|node| node.is("myself")).map(|node| node.id);
    // Some node has answered within about the last second, so this is about the present time.
    let now = nodes.iter().map(|node| node.answered).max().unwrap_or(0);
    let is_away = |node: &Node<'_>| node.is("fail") && now.saturating_sub(node.answered) >= millis(timeout);
    let is_candidate = |node: &&Node<'_>| {
        own.is_some_and(|own| node.master == own) && node.is("slave") && !node.is("noaddr") && !is_away(node)
    };
    let candidates: Vec<_> = nodes.iter().filter(is_candidate).collect();
    let known: BTreeSet<_> = nodes.iter().filter_map(|node| node.address.clone()).collect();
    let has_data = |node: &Node<'_>| node.has_slots && !node.is("fail");
    let is_other = |node: &&Node<'_>| match nodes.iter().find(|master| master.id == node.master) {
        Some(master) => Some(master.id) != own && has_data(master),
        None => Some(node.id) != own && has_data(node),
    };
    let possible =
        nodes.iter().filter(|node| !is_other(node)).filter_map(|node| node.address.clone()).collect();
    let copies = |address: &Address| listed.iter().any(|one| one.is_copying && one.address == *address);
    let is_listed = |node: &&Node<'_>| listed.iter().any(|one| Some(&one.address) == node.address.as_ref());
    // Servers outside the cluster can replicate too, to copy the data elsewhere.
    let is_named = listed.iter().all(|one| known.contains(&one.address)) || candidates.iter().all(is_listed);
    let candidates = if is_named {
        let addresses = candidates.into_iter().filter_map(|node| node.address.clone());
        Candidates::Named(addresses.filter(|address| !copies(address)).collect())
    } else {
        // The nodes announce other addresses.
        let copying = listed.iter().filter(|one| one.is_copying).count();
        Candidates::Counted(candidates.len().saturating_sub(copying))
    };
    OfCluster { candidates, possible }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::server_answers::Master;
    use super::*;

    const GOOD: Replica =
        Replica { address: (String::new(), 1), is_reachable: true, is_linked: true, says_master: false };
    /// Another one.
    const OTHER: Replica =
        Replica { address: (String::new(), 2), is_reachable: true, is_linked: true, says_master: false };

    fn heard(replicas: &[Replica], doubts_master: bool) -> Heard {
        let master = Master { address: ("a".to_owned(), 1), epoch: 1, candidates: BTreeSet::new() };
        Heard { master, replicas: replicas.to_vec(), doubts_master }
    }

    /// Returns a replica that has copied all data and confirmed something `lag` seconds ago.
    fn one(port: u16, lag: u64) -> ListedReplica {
        ListedReplica { address: (String::new(), port), is_copying: false, has_confirmed: true, lag }
    }

    #[test]
    fn replicas_that_sentinels_would_not_promote_are_no_candidates() {
        for other in [
            Replica { is_reachable: false, ..OTHER },
            Replica { is_linked: false, ..OTHER },
            Replica { says_master: true, ..OTHER },
        ] {
            let (one, both) = (heard(&[GOOD, other.clone()], false), heard(&[GOOD, OTHER], false));
            assert_eq!(of_sentinels(&[&one, &one, &one], 3).len(), 1, "{other:?}");
            assert_eq!(of_sentinels(&[&one, &both, &one], 3).len(), 2, "one sentinel would promote it");
        }
        assert_eq!(of_sentinels(&[], 3).len(), 0);
    }

    #[test]
    fn no_replica_is_left_out_while_others_may_be_about_to_promote_it() {
        let away = heard(&[GOOD, Replica { is_reachable: false, ..OTHER }], false);
        assert_eq!(of_sentinels(&[&away], 3).len(), 2, "most sentinels are silent");
        assert_eq!(of_sentinels(&[&away, &away], 3).len(), 1);
        for other in [Replica { is_linked: false, ..OTHER }, Replica { says_master: true, ..OTHER }] {
            let [calm, doubts] = [false, true].map(|doubts| heard(&[GOOD, other.clone()], doubts));
            assert_eq!(
                of_sentinels(&[&calm, &calm], 3).len(),
                2,
                "the third sentinel may replace the master"
            );
            assert_eq!(of_sentinels(&[&calm, &doubts, &calm], 3).len(), 2, "a sentinel doubts the master");
            assert_eq!(of_sentinels(&[&calm, &calm, &calm], 3).len(), 1);
        }
    }

    #[test]
    fn one_that_has_been_promoted_is_no_replica_of_itself() {
        let itself = Replica { address: ("a".to_owned(), 1), says_master: true, ..GOOD };
        assert_eq!(of_sentinels(&[&heard(&[GOOD, itself], true)], 3).len(), 1);
    }

    /// Returns a replica that a master lists at a port of this machine.
    fn at(port: u16, is_copying: bool) -> ListedReplica {
        let address = ("127.0.0.1".to_owned(), port);
        ListedReplica { address, is_copying, has_confirmed: !is_copying, lag: 0 }
    }

    /// Returns how many replicas of a cluster's master must have a change.
    fn required(nodes: &str, listed: &[ListedReplica], timeout: Duration) -> usize {
        let OfCluster { candidates, .. } = of_cluster(nodes, listed, timeout);
        match candidates {
            Candidates::Named(named) => named.len(),
            Candidates::Counted(count) => count,
        }
    }

    #[test]
    fn replicas_of_a_cluster_are_candidates_unless_most_masters_cannot_reach_them_or_they_copy_the_data() {
        let nodes = "a 127.0.0.1:1@2 myself,master - 0 0 1 connected 0-5460\n\
                     b 127.0.0.1:3@4 slave a 0 5600 1 connected\n\
                     c 127.0.0.1:5@6 slave,fail? a 2000 1999 1 disconnected\n\
                     d 127.0.0.1:7@8 slave,fail a 5000 5000 1 disconnected\n\
                     e 127.0.0.1:9@10 slave f 0 5500 1 connected\n\
                     f 127.0.0.1:11@12,host master - 0 6000 1 connected 5461-10922\n";
        let count = |listed: &[ListedReplica]| required(nodes, listed, Duration::from_secs(1));
        assert_eq!(count(&[at(3, false)]), 2);
        assert_eq!(count(&[at(3, true)]), 1);
        assert_eq!(count(&[at(3, false), at(7, true)]), 2);
        assert_eq!(count(&[at(1003, true)]), 1, "it announces another port");
        assert_eq!(count(&[at(3, false), at(5, false), at(99, false)]), 2, "one that reads along");
        assert_eq!(required("", &[], NODE_TIMEOUT), 0);
    }

    #[test]
    fn a_replica_of_a_cluster_whose_failure_is_old_news_counts_until_it_is_silent_for_the_timeout() {
        // It hung and answered again at 5000; then a master that had not heard of that said once more that it failed.
        let nodes = |other: u64| {
            format!(
                "a 127.0.0.1:1@2 myself,master - 0 0 1 connected 0-5460\n\
                 b 127.0.0.1:3@4 slave,fail a 5300 5000 1 connected\n\
                 c 127.0.0.1:5@6 slave a 0 {other} 1 connected\n"
            )
        };
        let second = Duration::from_secs(1);
        for (other, expected) in [(5_100, 2), (5_999, 2), (6_000, 1)] {
            assert_eq!(required(&nodes(other), &[], second), expected, "at {other}");
        }
        assert_eq!(required(&nodes(19_999), &[], NODE_TIMEOUT), 2);
        // It has never answered.
        assert_eq!(required(&nodes(6_000).replace("5300 5000", "0 0"), &[], second), 1);
    }

    #[test]
    fn a_former_master_that_is_not_known_as_a_replica_yet_does_not_confirm_in_place_of_a_candidate() {
        let nodes = "a 127.0.0.1:1@2 myself,master - 0 0 1 connected 0-5460\n\
                     b 127.0.0.1:3@4 slave a 0 5600 1 connected\n\
                     c 127.0.0.1:5@6 master - 0 5500 1 connected\n";
        let OfCluster { candidates, .. } = of_cluster(nodes, &[at(5, false)], NODE_TIMEOUT);
        let replicas = Replicas::new(candidates, &[at(5, false)], Instant::now());
        assert_eq!(replicas.required(), 2);
    }

    #[test]
    fn one_that_was_ready_and_is_not_listed_counts_unless_it_has_or_replicates_other_data() {
        // What is known of b and c is older than the fail-over: they seem to replicate the former master.
        let nodes = "a 127.0.0.1:1@2 myself,master - 0 0 1 connected 0-5460\n\
                     b 127.0.0.1:3@4 slave f 0 5600 1 connected\n\
                     c 127.0.0.1:5@6 slave f 0 5600 1 connected\n\
                     d 127.0.0.1:7@8 slave g 0 5600 1 connected\n\
                     f 127.0.0.1:11@12 master,fail - 0 100 1 connected\n\
                     g 127.0.0.1:13@14 master - 0 6000 1 connected 5461-10922\n";
        let begin = Instant::now();
        let OfCluster { candidates, possible } = of_cluster(nodes, &[at(3, false)], NODE_TIMEOUT);
        // The last one is not a node: it reads along.
        let ready = [at(3, false), at(5, false), at(7, false), at(13, false), at(99, false)];
        let known = Replicas::new(Candidates::Counted(0), &ready, begin);
        let again = |after| {
            let mut again = Replicas::new(candidates.clone(), &[at(3, false)], begin + NODE_TIMEOUT);
            again.take_over(&known, after);
            again.keep(&possible, begin + NODE_TIMEOUT);
            again.required()
        };
        assert_eq!(again(begin), 2, "b, which is listed, and c");
        assert_eq!(again(begin + Duration::from_millis(1)), 1, "c was ready too long ago");
    }

    #[test]
    fn newcomers_count_beside_the_candidates_until_those_are_asked_again() {
        let loading = ListedReplica { has_confirmed: false, ..one(9, 0) };
        let begin = Instant::now();
        let mut replicas = Replicas::new(Candidates::Counted(2), &[one(1, 0), one(2, 0)], begin);
        assert_eq!(replicas.required(), 2);
        // The second one hangs, and a third one comes and goes.
        replicas.see(&[one(1, 0), one(2, 2), one(3, 0), loading], begin);
        assert_eq!(replicas.required(), 3);
        replicas.see(&[one(1, 0)], begin);
        assert_eq!(replicas.required(), 3);
        // While it is looked at again, a fourth and a fifth one come.
        let asked = begin + Duration::from_millis(1);
        replicas.see(&[one(4, 0), one(5, 0)], asked);
        let mut again = Replicas::new(Candidates::Counted(2), &[one(1, 0), one(4, 0)], asked);
        again.take_over(&replicas, asked);
        assert_eq!(again.required(), 3, "two candidates, and the fifth one");
    }

    #[test]
    fn one_that_was_listed_but_not_ready_counts_once() {
        let loading = ListedReplica { has_confirmed: false, ..one(2, 0) };
        // Two were silent for a moment.
        let mut replicas = Replicas::new(Candidates::Counted(2), &[one(1, 2), one(2, 2)], Instant::now());
        replicas.see(&[one(1, 0), one(2, 0)], Instant::now());
        assert_eq!(replicas.required(), 2);
        // One that was loading is not a candidate yet.
        let mut replicas = Replicas::new(Candidates::Counted(1), &[one(1, 0), loading], Instant::now());
        assert_eq!(replicas.required(), 1);
        replicas.see(&[one(1, 0), one(2, 0)], Instant::now());
        assert_eq!(replicas.required(), 2);
        assert_eq!(Replicas::new(Candidates::Counted(0), &[], Instant::now()).required(), 1);
        assert_eq!(
            Replicas::new(Candidates::Counted(0), &[one(1, 0), one(2, 0), one(3, 2)], Instant::now())
                .required(),
            2
        );
    }

    #[test]
    fn one_that_is_ready_and_that_nobody_would_promote_counts_beside_those_that_may_be() {
        // The first one is parted from the sentinels together with the master, and the second one from both.
        let named = |ports: &[u16]| ports.iter().map(|port| (String::new(), *port)).collect::<BTreeSet<_>>();
        let mut replicas =
            Replicas::new(Candidates::Named(named(&[2])), &[one(1, 0), one(2, 4)], Instant::now());
        assert_eq!(replicas.required(), 2);
        replicas.see(&[one(2, 0), one(3, 0)], Instant::now());
        assert_eq!(replicas.required(), 3);
        replicas.name(&named(&[3, 4]));
        assert_eq!(replicas.required(), 4);
        assert_eq!(Replicas::new(Candidates::Named(named(&[])), &[], Instant::now()).required(), 1);
    }
}
