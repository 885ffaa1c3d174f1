//! Tests of the end mark: a log that was cut is refused, and no power cut leaves a log without its end.

use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex};

use super::*;
use crate::redo_log::log::Disk;

/// How many blocks the frames of [`append`] have. The ninth would overwrite just the end mark of a new log.
const FRAME: usize = 7;

fn append(log: &mut Log, sequence: u64) {
    let mut frame = Frame::new();
    frame.put(3, b"key", &[&sequence.to_le_bytes()[..], &[sequence as u8; (FRAME - 1) * BLOCK]].concat());
    log.append(&mut frame, sequence).unwrap();
}

/// A step of a log on its disk, or of the database above it.
enum Step {
    Write(u64, Vec<u8>),
    Sync,
    /// The frame of this number was acknowledged.
    Acknowledged(u64),
    /// All frames up to this one are in the database.
    Checkpoint(u64),
}

/// A disk that stores nothing but the steps that were made.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<Step>>>);

impl Recorder {
    fn step(&self, step: Step) {
        self.0.lock().unwrap().push(step);
    }

    fn syncs(&self) -> usize {
        self.0.lock().unwrap().iter().filter(|step| matches!(step, Step::Sync)).count()
    }

    fn create(&self) -> Log {
        let directory = tempfile::tempdir().unwrap();
        let disk = |_: File| Box::new(self.clone()) as Box<dyn Disk>;
        Log::create(&directory.path().join("some.redo"), GENERATION, 0, disk).unwrap()
    }

    /// Records the steps of a log that grows several times, and is then written from its start again: once up to the
    /// frames of a checkpoint that is not safe and then behind them, and once after it was safe at once.
    fn live(&self) {
        // The frames after which a checkpoint begins and is safe.
        const CHECKPOINTS: [(u64, u64); 4] = [(10, 12), (14, 27), (30, 30), (34, 38)];
        let mut log = self.create();
        for sequence in 1..=40 {
            append(&mut log, sequence);
            self.step(Step::Acknowledged(sequence));
            if CHECKPOINTS.iter().any(|(begins, _)| *begins == sequence) {
                log.begin_checkpoint();
            }
            if let Some((base, _)) = CHECKPOINTS.iter().find(|(_, is_safe)| *is_safe == sequence) {
                self.step(Step::Checkpoint(*base));
                log.finish_checkpoint(*base).unwrap();
            }
        }
    }
}

impl Disk for Recorder {
    fn write(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.step(Step::Write(at, bytes.to_vec()));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.step(Step::Sync);
        Ok(())
    }
}

fn write(file: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    file.resize(file.len().max(at + bytes.len()), 0);
    file[at..at + bytes.len()].copy_from_slice(bytes);
}

/// Returns files that may be on the disk after a power cut: all that was synced, and some of the blocks written since.
fn after_power_cut(synced: &[u8], since: &[(usize, Vec<u8>)]) -> impl Iterator<Item = Vec<u8>> {
    let last = since.len().saturating_sub(1);
    let kept: [fn(usize, usize) -> bool; 8] = [
        |_, _| false,
        |_, _| true,
        |block, _| block % 2 == 0,
        |block, _| block % 2 == 1,
        |block, last| block <= last / 2,
        |block, last| block > last / 2,
        |block, last| block == last,
        |block, last| block != last,
    ];
    kept.into_iter().map(move |is_kept| {
        let mut file = synced.to_vec();
        for (_, (at, bytes)) in since.iter().enumerate().filter(|(block, _)| is_kept(*block, last)) {
            write(&mut file, *at, bytes);
        }
        file
    })
}

#[test]
fn after_a_power_cut_at_any_time_all_that_was_acknowledged_is_read() {
    let recorder = Recorder::default();
    recorder.live();
    let (mut synced, mut since, mut syncs) = (Vec::new(), Vec::new(), 0);
    let (mut acknowledged, mut checkpoint) = (0, 0);
    for step in recorder.0.lock().unwrap().iter() {
        match step {
            Step::Write(at, bytes) => {
                let blocks = bytes.chunks(BLOCK).enumerate();
                since.extend(blocks.map(|(n, block)| (*at as usize + n * BLOCK, block.to_vec())));
            }
            Step::Sync => {
                since.drain(..).for_each(|(at, bytes)| write(&mut synced, at, &bytes));
                syncs += 1;
            }
            Step::Acknowledged(sequence) => acknowledged = *sequence,
            Step::Checkpoint(sequence) => checkpoint = *sequence,
        }
        for file in after_power_cut(&synced, &since) {
            match replayed(&file, checkpoint) {
                Ok(read) => {
                    let last = read.last().copied().unwrap_or(checkpoint);
                    assert!(last == acknowledged || last == acknowledged + 1, "{last} of {acknowledged}");
                }
                // The log was being created, and its database does not need it.
                Err(Damage::At(0)) if syncs < 2 => {}
                Err(damage) => panic!("after {acknowledged} frames: {damage}"),
            }
        }
    }
    assert_eq!(acknowledged, 40);
}

#[test]
fn a_log_that_is_cut_at_any_block_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("some.redo");
    let mut log = Log::create(&path, GENERATION, 0, |file| Box::new(file)).unwrap();
    let (mut checkpoint, mut lengths) = (0, Vec::new());
    for sequence in 1..=32 {
        append(&mut log, sequence);
        if sequence % 8 == 0 {
            let file = std::fs::read(&path).unwrap();
            assert_eq!(replayed(&file, checkpoint), Ok((checkpoint + 1..=sequence).collect()));
            for cut in (BLOCK..file.len()).step_by(BLOCK) {
                let read = replayed(&file[..cut], checkpoint);
                assert_eq!(read, Err(Damage::NoEnd), "cut at byte {cut} after {sequence} frames");
            }
            assert_eq!(replayed(&file[..file.len() - 1], checkpoint), Err(Damage::NoEnd));
            assert_eq!(replayed(&file[..BLOCK - 1], checkpoint), Err(Damage::At(0)));
            lengths.push(file.len());
        }
        if sequence == 24 {
            restart(&mut log, sequence);
            checkpoint = sequence;
        }
    }
    lengths.dedup();
    assert!(lengths.len() > 2, "it has grown only to {lengths:?}");
}

#[test]
fn an_end_mark_that_was_changed_is_none() {
    let whole = log(&[small(1), large(2)]);
    for at in whole.len() - BLOCK..whole.len() {
        let mut file = whole.clone();
        file[at] ^= 1 << (at % 8);
        assert_eq!(replayed(&file, 0), Err(Damage::NoEnd), "byte {at}");
    }
    let mut other = whole.clone();
    other[whole.len() - BLOCK..].copy_from_slice(&end_mark(GENERATION + 1));
    assert_eq!(replayed(&other, 0), Err(Damage::NoEnd), "it is that of another log");
}

/// The log is as after a power cut between its growth and the frame for which it has grown.
#[test]
fn a_log_with_two_end_marks_may_be_cut_behind_the_first() {
    let mark = end_mark(GENERATION);
    let file = [log(&[small(1), large(2)]), vec![0; 3 * BLOCK], mark].concat();
    let first = log(&[small(1), large(2)]).len();
    for cut in (first..=file.len()).step_by(BLOCK) {
        assert_eq!(replayed(&file[..cut], 0), Ok(vec![1, 2]), "cut at byte {cut}");
    }
}

#[test]
fn a_log_syncs_once_for_each_frame_and_once_more_when_it_grows_or_begins_anew() {
    let recorder = Recorder::default();
    let mut log = recorder.create();
    let created = recorder.syncs();
    let mut frames = 0;
    // It doubles from 256 KiB to 16 MiB.
    while log.bytes() + ((FRAME + 2) * BLOCK) as u64 <= 16 << 20 {
        frames += 1;
        append(&mut log, frames as u64);
    }
    assert_eq!(recorder.syncs(), created + frames + 6);
    restart(&mut log, frames as u64);
    for n in 1..=frames {
        append(&mut log, (frames + n) as u64);
    }
    assert_eq!(recorder.syncs(), created + 2 * frames + 6 + 1, "it has grown again");
}
