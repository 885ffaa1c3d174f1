//! How many replicas may take over from a master. A change is confirmed when each of them has it: one that has it is
//! not enough, because another one may be promoted.
//!
//! Sentinels promote none that is down, that was silent for five seconds, or whose link to the master is down while
//! another one has more. The masters of a cluster elect none that most of them cannot reach.

use super::answer::{Heard, Replica};

/// The candidates by what these sentinels say, which name the same master. `all` is how many sentinels there are.
///
/// Most of them must answer before a replica is left out: the others may have elected it. A former master that is up
/// again still says that it is one, but so does a replica that is being promoted.
pub(super) fn of_sentinels(heard: &[&Heard], all: usize) -> usize {
    let is_majority = heard.len() > all / 2;
    let is_failing_over = heard.len() < all || heard.iter().any(|one| one.is_failing_over);
    let is_candidate = |replica: &&Replica| {
        let is_former = replica.says_master && !is_failing_over;
        !is_majority || (replica.is_reachable && replica.is_linked && !is_former)
    };
    let counts = heard.iter().map(|one| one.replicas.iter().filter(is_candidate).count());
    counts.max().unwrap_or(0)
}

/// The candidates by what a master of a cluster answers to CLUSTER NODES and to INFO replication. One that copies the
/// data is none yet. One that only this master cannot reach is: the other masters may elect it.
pub(super) fn of_cluster(nodes: &str, info: &str) -> usize {
    let nodes: Vec<Vec<&str>> = nodes.lines().map(|line| line.split_whitespace().collect()).collect();
    let has = |node: &[&str], flag| node.get(2).is_some_and(|flags| flags.split(',').any(|one| one == flag));
    let Some(own) = nodes.iter().find(|node| has(node, "myself")).map(|node| node[0]) else { return 0 };
    let is_candidate = |node: &&Vec<&str>| {
        node.get(3) == Some(&own)
            && has(node, "slave")
            && !["fail", "noaddr"].iter().any(|flag| has(node, flag))
    };
    let copies = info.lines().filter(|line| {
        line.starts_with("slave") && (line.contains("state=wait_bgsave") || line.contains("state=send_bulk"))
    });
    nodes.iter().filter(is_candidate).count().saturating_sub(copies.count())
}

#[cfg(test)]
mod tests {
    use super::super::answer::Master;
    use super::*;

    const GOOD: Replica = Replica { is_reachable: true, is_linked: true, says_master: false };

    fn heard(replicas: &[Replica], is_failing_over: bool) -> Heard {
        let master = Master { address: ("a".to_owned(), 1), epoch: 1, candidates: 0 };
        Heard { master, replicas: replicas.to_vec(), is_failing_over }
    }

    #[test]
    fn replicas_that_sentinels_would_not_promote_are_no_candidates() {
        for other in [
            Replica { is_reachable: false, ..GOOD },
            Replica { is_linked: false, ..GOOD },
            Replica { says_master: true, ..GOOD },
        ] {
            let (one, both) = (heard(&[GOOD, other.clone()], false), heard(&[GOOD, GOOD], false));
            assert_eq!(of_sentinels(&[&one, &one, &one], 3), 1, "{other:?}");
            assert_eq!(of_sentinels(&[&one, &both, &one], 3), 2, "one sentinel would promote it");
        }
    }

    #[test]
    fn no_replica_is_left_out_while_others_may_be_about_to_promote_it() {
        let down = heard(&[GOOD, Replica { is_reachable: false, ..GOOD }], false);
        assert_eq!(of_sentinels(&[&down], 3), 2, "most sentinels are silent");
        assert_eq!(of_sentinels(&[&down, &down], 3), 1);
        let promoted = [GOOD, Replica { says_master: true, ..GOOD }];
        let (quiet, busy) = (heard(&promoted, false), heard(&promoted, true));
        assert_eq!(of_sentinels(&[&quiet, &quiet], 3), 2, "the third one may replace the master");
        assert_eq!(of_sentinels(&[&quiet, &busy, &quiet], 3), 2);
        assert_eq!(of_sentinels(&[&quiet, &quiet, &quiet], 3), 1);
        assert_eq!(of_sentinels(&[], 3), 0);
    }

    #[test]
    fn replicas_of_a_cluster_are_candidates_unless_most_masters_cannot_reach_them_or_they_copy_the_data() {
        let nodes = "a 127.0.0.1:1@2 myself,master - 0 0 1 connected 0-5460\n\
                     b 127.0.0.1:3@4 slave a 0 1 1 connected\n\
                     c 127.0.0.1:5@6 slave,fail? a 0 1 1 disconnected\n\
                     d 127.0.0.1:7@8 slave,fail a 0 1 1 disconnected\n\
                     e 127.0.0.1:9@10 slave f 0 1 1 connected\n\
                     f 127.0.0.1:11@12 master - 0 1 1 connected 5461-10922\n";
        let online = "role:master\r\nslave0:ip=127.0.0.1,port=3,state=online,offset=5,lag=0\r\n";
        assert_eq!(of_cluster(nodes, online), 2);
        assert_eq!(of_cluster(nodes, &online.replace("online", "wait_bgsave")), 1);
        assert_eq!(of_cluster("", ""), 0);
    }
}
