//! What a run observes besides its clients and receivers: resources of processes, states of jobs, counters, stalls of
//! the machine, and leaked secrets. All of it goes into the history.

mod counters;
mod job_observers;
mod samples;
mod secrets;
mod stalls;

use std::sync::Arc;

use tokio::task::JoinSet;

use self::samples::Memory;
use self::stalls::Stalls;
use crate::clients::{Api, Clients};
use crate::installation::Installation;

/// The observers of a run.
pub(crate) struct Watch {
    installation: Arc<Installation>,
    memory: Memory,
    /// The tasks of the observers, which run until this is dropped.
    tasks: JoinSet<()>,
    _stalls: Stalls,
}

impl Watch {
    /// Plants the secrets, writes the first samples, and starts the observers. The load must begin afterwards.
    pub(crate) async fn begin(installation: &Arc<Installation>, clients: &Arc<Clients>) -> Self {
        secrets::plant(&clients.api, &installation.history).await;
        samples::write_limits(&installation.history);
        samples::write(installation).await;
        let memory = Memory::read(installation).await;
        let stalls = Stalls::watch(installation.history.clone());
        let mut tasks = JoinSet::new();
        tasks.spawn(samples::repeat(Arc::clone(installation)));
        for number in 0..job_observers::OBSERVERS {
            tasks.spawn(job_observers::observe(Arc::clone(clients), number));
        }
        Self { installation: Arc::clone(installation), memory, tasks, _stalls: stalls }
    }

    /// Stops the observers, and writes the last samples, counters and search for secrets. No job may be due any more.
    pub(crate) async fn end(mut self, api: &Api) {
        self.tasks.shutdown().await;
        let installation = &self.installation;
        samples::write(installation).await;
        self.memory.write(installation, api).await;
        counters::write(installation).await;
        secrets::scan_answers(installation, api).await;
    }
}
