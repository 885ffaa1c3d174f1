//! Host names of receivers: unknown names, silent or failing name servers, one address family only, dead addresses
//! among others, and families that this machine does not have.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ringback_testkit::{Failing, Family, LookUp, NameServer, Role};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::prelude::*;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// The same as an address of the other family.
const HERE_SIX: IpAddr = IpAddr::V6(Ipv4Addr::LOCALHOST.to_ipv6_mapped());
/// Where nobody listens.
const CLOSED: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 3));

fn asking(names: &NameServer) -> StackOptions {
    Stack::options().env("RINGBACK_NAME_SERVERS", &names.address().to_string())
}

/// A job for the receiver under another host name.
fn job_for(sink: &Sink, id: &str, name: &str) -> Value {
    with(job(sink, id), "url", sink.url("/hook").replace("127.0.0.1", name))
}

/// Submits a job without retries, and returns the error of its only attempt.
async fn error_of(stack: &Stack, job: Value) -> Value {
    let job = with(job, "retry", json!({"preset": "none"}));
    stack.accept(&job).await;
    stack.wait_state(TOPIC, job["id"].as_str().expect("an id"), "dead", SOON).await["last"]["error"].clone()
}

#[tokio::test]
async fn a_name_is_asked_for_once_and_each_of_its_addresses_is_tried() {
    let (names, sink) = (NameServer::start(60), Sink::start().await);
    // Each job needs a connection of its own.
    sink.answer(Answer::status(200).header("connection", "close"));
    // Nobody listens at the first two addresses.
    names.knows("shop.example", &[[127, 0, 0, 3].into(), [127, 0, 0, 2].into(), HERE]);
    let stack = asking(&names).count(Role::Notifier, 1).start().await;
    for n in 0..20 {
        stack.accept(&with(job_for(&sink, &n.to_string(), "shop.example"), "timeout", "10s")).await;
        sink.wait_for_job(&n.to_string(), 1, SOON).await;
    }
    assert_eq!(names.asked("shop.example"), 2, "once for each family");
    assert_eq!(
        sink.arrivals()[0].header("host"),
        Some(&*sink.url("").replace("http://127.0.0.1", "shop.example"))
    );
}

#[tokio::test]
async fn a_name_without_an_address_and_a_family_that_is_missing_fail_and_say_why() {
    let (names, sink) = (NameServer::start(60), Sink::start().await);
    names.knows("none.example", &[]);
    // TCP has no multicast, so that no machine has a way to it.
    let away = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
    names.knows("six.example", &[away.into()]);
    let stack = asking(&names).start().await;
    for (name, expected) in [
        ("unknown.example", "dns"),
        ("none.example", "dns"),
        ("six.example", "connect"),
        ("[ff02::1]", "connect"),
    ] {
        let id = name.replace(['[', ']', ':'], "-");
        assert_eq!(error_of(&stack, job_for(&sink, &id, name)).await, expected, "{name}");
    }
}

#[tokio::test]
async fn a_family_that_a_name_server_does_not_answer_for_costs_a_short_wait() {
    let (names, sink) = (NameServer::start(60), Sink::start().await);
    let stack = asking(&names).start().await;
    // FORMERR, SERVFAIL, NXDOMAIN, NOTIMP, REFUSED.
    let codes = [1, 2, 3, 4, 5].map(Failing::Code);
    let failings = [Failing::Silent].into_iter().chain(codes);
    let mut ids = Vec::new();
    for (n, failing) in failings.enumerate() {
        for (family, address) in [(Family::Six, HERE), (Family::Four, HERE_SIX)] {
            let id = format!("{family:?}-{n}").to_lowercase();
            let name = format!("{id}.example");
            names.knows(&name, &[address]);
            names.fails(&name, family, failing);
            // A name server that does not answer is waited for longer.
            let members = json!({"timeout": "3s", "retry": {"preset": "none"}});
            stack.accept(&with_all(job_for(&sink, &id, &name), &members)).await;
            ids.push(id);
        }
    }
    for id in ids {
        stack.wait_state(TOPIC, &id, "done", SOON).await;
    }
}

#[tokio::test]
async fn an_address_that_is_dead_does_not_cost_the_attempt_while_another_answers() {
    let (names, sink) = (NameServer::start(60), Sink::start().await);
    sink.answer(Answer::status(200).header("connection", "close"));
    let port =
        sink.url("").trim_end_matches('/').rsplit(':').next().map(|port| port.parse().expect("a port"));
    let mut holes = Vec::new();
    for last in [8, 9] {
        holes.push(Hole::at(SocketAddr::from(([127, 0, 0, last], port.expect("a port")))).await);
    }
    let dead = [holes[0].address(), holes[1].address()];
    names.knows("holes.example", &[dead[0], dead[1], HERE]);
    names.knows("late.example", &[CLOSED, HERE_SIX]);
    names.knows("late-beside-a-hole.example", &[dead[0], HERE_SIX]);
    names.knows("late-four.example", &[Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1).into(), HERE]);
    for (name, family) in [
        ("late.example", Family::Six),
        ("late-beside-a-hole.example", Family::Six),
        ("late-four.example", Family::Four),
    ] {
        names.fails(name, family, Failing::Late(Duration::from_millis(400)));
    }
    let stack = asking(&names).start().await;
    let several = (0..6).map(|_| "holes.example");
    let late = ["late.example", "late-beside-a-hole.example", "late-four.example"];
    for (n, name) in several.chain(late).enumerate() {
        let members = json!({"timeout": "5s", "retry": {"preset": "none"}});
        stack.accept(&with_all(job_for(&sink, &n.to_string(), name), &members)).await;
        stack.wait_state(TOPIC, &n.to_string(), "done", SOON).await;
    }
    // Of several errors, the job gets the one that says most, whichever comes first.
    names.knows("closed.example", &[Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1).into(), CLOSED]);
    for n in 0..2 {
        let job = job_for(&sink, &format!("closed-{n}"), "closed.example");
        assert_eq!(error_of(&stack, job).await, "refused");
    }
}

/// An address where nobody answers: a listener whose queue is full, so that the system drops what else comes.
struct Hole {
    listener: TcpListener,
    _queue: Vec<TcpStream>,
}

impl Hole {
    async fn at(address: SocketAddr) -> Self {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind(address).expect("the port is free");
        let (listener, mut queue) = (socket.listen(0).expect("it listens"), Vec::new());
        while let Ok(connected) = timeout(Duration::from_millis(200), TcpStream::connect(address)).await {
            queue.push(connected.expect("there is room"));
        }
        Self { listener, _queue: queue }
    }

    fn address(&self) -> IpAddr {
        self.listener.local_addr().expect("it is bound").ip()
    }
}

#[tokio::test]
async fn attempts_that_wait_for_a_silent_name_server_hold_no_threads_and_do_not_keep_others_waiting() {
    let (names, sink) = (NameServer::start(60), Sink::start().await);
    names.set("silent.example", LookUp::Silent);
    (0..20).for_each(|n| names.knows(&format!("shop-{n}.example"), &[HERE]));
    let stack = asking(&names).count(Role::Notifier, 1).start().await;
    let threads = || {
        let tasks = format!("/proc/{}/task", stack.notifiers[0].pid());
        std::fs::read_dir(tasks).expect("it is running").count()
    };
    let before = threads();
    let fields = json!({"timeout": "200ms", "retry": {"delays": ["100ms"], "max": -1, "jitter": 0}});
    for n in 0..200 {
        stack.accept(&with_all(job_for(&sink, &format!("silent-{n}"), "silent.example"), &fields)).await;
    }
    let attempts = async || {
        let count = stack.notifiers[0].metric(r#"ringback_notifier_attempts_total{result="retry"}"#).await;
        count.unwrap_or_default() as usize
    };
    eventually(SOON, "attempts fail", async || match attempts().await {
        400.. => Ok(()),
        few => Err(few),
    })
    .await;
    for n in 0..20 {
        let id = format!("new-{n}");
        stack.accept(&job_for(&sink, &id, &format!("shop-{n}.example"))).await;
        sink.wait_for_job(&id, 1, SOON).await;
    }
    // A thread for each look-up would make hundreds.
    assert!(threads() <= before + 4, "{} threads, {before} before", threads());
    let (asked, attempts) = (names.asked("silent.example"), attempts().await);
    assert!(
        asked < attempts / 10,
        "{asked} questions for {attempts} attempts: one look-up serves all that wait"
    );
}
