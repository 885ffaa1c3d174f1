//! Measures what one tenant sees while another attacks: the latency of its submits and the lateness of its deliveries,
//! beside the same without the attack. Each attack has an installation of its own.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

use ringback_testkit::{Process, Role, Stack, http_client};
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep};

use crate::attack::{ATTACKS, Attack};
use crate::figure::{Figure, Spread};
use crate::generator::{Load, Pace, Request, generate};
use crate::receiver::{Channel, Receiver};
use crate::setup::{Profile, Setup, api_address};
use crate::usage::cpu_seconds;

pub(crate) const NAME: &str = "attacks";
const ROOT: &str = "the-root-key-of-the-benchmark-of-attacks";
/// Jobs per second of the tenant that is measured.
const RATE: f64 = 300.0;
const CONNECTIONS: usize = 8;
/// How long an attack goes on before anything is measured.
const BEFORE: Duration = Duration::from_secs(5);

pub(crate) async fn run(setup: &Setup) {
    let seconds = setup.size.pick(4.0, 1.0);
    for attack in ATTACKS.iter().filter(|attack| setup.attack.is_none_or(|only| attack.name == only)) {
        one(setup, attack, (RATE * seconds) as usize).await;
    }
}

async fn one(setup: &Setup, attack: &Attack, requests: usize) {
    // A name server that never answers.
    let silent = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let server = silent.local_addr().expect("a socket has an address").to_string();
    // With `always`, waits for the disk hide other costs.
    let options = setup.stack(Profile::EverySec).count(Role::Carrier, 2);
    let stack = options.env("RINGBACK_ROOT_KEY", ROOT).env("RINGBACK_NAME_SERVERS", &server).start().await;
    let receiver = Receiver::start().await;
    let (own, hostile) = (key(&stack, "measured").await, key(&stack, "hostile").await);
    let mut quiet = Quiet { stack: &stack, receiver: &receiver, key: own, requests, first: 0 };
    // The first round warms up.
    quiet.round().await;
    let calm = setup.repeat(async || quiet.round().await).await;
    let running = attack.start(api_address(&stack), &hostile);
    sleep(BEFORE).await;
    let (before, since) = (used_by(&stack), Instant::now());
    let attacked = setup.repeat(async || quiet.round().await).await;
    let (after, seconds) = (used_by(&stack), since.elapsed().as_secs_f64());
    drop(running);
    let cores: Map<_, _> = after
        .iter()
        .map(|(role, cpu)| {
            ((*role).to_owned(), json!(((cpu - before[role]) / seconds * 100.0).round() / 100.0))
        })
        .collect();
    let spread = |rounds: &[[f64; 2]], i: usize| Spread::of(rounds.iter().map(|round| round[i]));
    for (i, what) in ["submit-p99", "delivery-p99"].into_iter().enumerate() {
        let (name, with) = (format!("{}: {what}", attack.name), json!({ "rate": RATE, "cores": cores }));
        let yardstick = Some(("without", spread(&calm, i)));
        Figure { scenario: NAME, name: &name, unit: "ms", value: spread(&attacked, i), yardstick, with }
            .report();
    }
}

/// The seconds of CPU time used by Redis and by the processes of each role.
fn used_by(stack: &Stack) -> BTreeMap<&'static str, f64> {
    let of = |processes: &[Process]| processes.iter().map(|process| cpu_seconds(process.pid())).sum();
    BTreeMap::from([
        ("redis", cpu_seconds(stack.redis().pid())),
        ("apis", of(&stack.apis)),
        ("carriers", of(&stack.carriers)),
        ("notifiers", of(&stack.notifiers)),
    ])
}

async fn key(stack: &Stack, tenant: &str) -> String {
    let grant = json!({ "tenant": tenant, "scopes": ["submit", "consume", "read", "manage", "import"] });
    let ask = http_client().post(stack.url("/v1/keys")).bearer_auth(ROOT);
    let answer = ask.header("content-type", "application/json").body(grant.to_string()).send().await;
    let bytes = answer.expect("an answer").bytes().await.expect("a whole answer");
    let made: Value = serde_json::from_slice(&bytes).expect("JSON");
    made["key"].as_str().expect("a key").to_owned()
}

/// The tenant that is measured.
struct Quiet<'a> {
    stack: &'a Stack,
    receiver: &'a Receiver,
    key: String,
    requests: usize,
    first: usize,
}

impl Quiet<'_> {
    /// Submits jobs at an even pace, due at once. Returns the p99 of the submits' latency and of the lateness, in ms.
    async fn round(&mut self) -> [f64; 2] {
        let address = api_address(self.stack);
        let url = self.receiver.url(Channel::Main);
        let request = Request::one_with_key(address, &url, &json!({}), &self.key);
        let pace = Pace::Even { rate: RATE, requests: self.requests };
        self.receiver.expect(self.first..self.first + self.requests);
        let load = Load { address, request, connections: CONNECTIONS, pace, first: self.first };
        let sent = generate(load).await;
        self.first += self.requests;
        self.receiver.wait_for(sent.jobs, Duration::from_secs(60)).await;
        [sent.latencies.millis(0.99), self.receiver.board().lateness(Channel::Main).millis(0.99)]
    }
}
