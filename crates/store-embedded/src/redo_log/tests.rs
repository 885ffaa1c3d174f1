//! Tests of reading logs that were torn, changed, overwritten or mixed up.

mod end_mark;

use std::ops::Range;

use super::frame::{BLOCK, Frame, Row, end_mark, head};
use super::log::Log;
use super::replay::{Damage, read};

const GENERATION: u64 = 77;

fn sealed(generation: u64, sequence: u64, value: &[u8]) -> Vec<u8> {
    let mut frame = Frame::new();
    frame.put(3, b"key", value);
    frame.seal(generation, sequence).to_vec()
}

/// Returns a frame that has its number in it, in one block.
fn small(sequence: u64) -> Vec<u8> {
    sealed(GENERATION, sequence, &sequence.to_le_bytes())
}

/// Returns a frame over three blocks.
fn large(sequence: u64) -> Vec<u8> {
    sealed(GENERATION, sequence, &[&sequence.to_le_bytes()[..], &[sequence as u8; 2 * BLOCK]].concat())
}

fn log(frames: &[Vec<u8>]) -> Vec<u8> {
    log_behind(0, frames)
}

/// Returns a log whose frames follow the checkpoint `base`.
fn log_behind(base: u64, frames: &[Vec<u8>]) -> Vec<u8> {
    [&head(GENERATION, base)[..], &frames.concat(), &[0; 4 * BLOCK], &end_mark(GENERATION)].concat()
}

/// Makes a checkpoint that is safe at once.
fn restart(log: &mut Log, base: u64) {
    log.begin_checkpoint();
    log.finish_checkpoint(base).unwrap();
}

/// Returns the numbers in the frames that are to be replayed.
fn replayed(file: &[u8], checkpoint: u64) -> Result<Vec<u64>, Damage> {
    let found = read(file, checkpoint)?;
    let mut numbers = Vec::new();
    let replay = found.each_row(|row| {
        let first = row.value.and_then(|value| value.first_chunk()).expect("a number");
        numbers.push(u64::from_le_bytes(*first));
        Ok(())
    });
    replay.expect("all rows can be read");
    assert_eq!(found.sequence, numbers.last().copied().unwrap_or(checkpoint));
    Ok(numbers)
}

/// Returns the range of the last of three frames in a log, without the zeros behind it.
fn tail() -> Range<usize> {
    let start = BLOCK + small(1).len() + large(2).len();
    start..start + 24 + (1 + 4 + 3 + 4 + 8 + 2 * BLOCK)
}

#[test]
fn rows_are_read_as_they_were_written() {
    let mut frame = Frame::new();
    frame.put(1, b"", b"");
    frame.remove(15, b"gone");
    frame.put(4, &[0, 255], &[7; 5000]);
    assert_eq!(frame.bytes(), 9 + 9 + 5011);
    let file = log_behind(8, &[frame.seal(GENERATION, 9).to_vec()]);
    let found = read(&file, 8).unwrap();
    let mut rows = Vec::new();
    let replay = |row| {
        rows.push(row);
        Ok(())
    };
    found.each_row(replay).unwrap();
    let row = |table, key, value| Row { table, key, value };
    assert_eq!(rows, [row(1, b"", Some(b"")), row(15, b"gone", None), row(4, &[0, 255], Some(&[7; 5000]))]);
    assert_eq!(found.sequence, 9);
    frame.clear();
    assert_eq!(frame.bytes(), 0);
}

#[test]
fn a_last_frame_that_was_not_written_to_its_end_is_dropped() {
    let whole = log(&[small(1), large(2), large(3)]);
    assert_eq!(replayed(&whole, 0), Ok(vec![1, 2, 3]));
    for torn in tail() {
        let mut zeroed = whole.clone();
        zeroed[torn..tail().end].fill(0);
        // Its last bytes may have been zeros anyway.
        if zeroed != whole {
            assert_eq!(replayed(&zeroed, 0), Ok(vec![1, 2]), "zeros from byte {torn}");
        }
    }
}

#[test]
fn a_last_frame_of_which_only_later_blocks_were_written_is_dropped() {
    let mut file = log(&[small(1), large(2), large(3)]);
    file[tail().start..tail().start + BLOCK].fill(0);
    assert_eq!(replayed(&file, 0), Ok(vec![1, 2]));
}

#[test]
fn a_changed_bit_drops_the_last_frame_and_is_damage_in_an_earlier_one() {
    let whole = log(&[small(1), large(2), large(3)]);
    let flipped = |at: usize| {
        let mut file = whole.clone();
        file[at] ^= 1 << (at % 8);
        file
    };
    for at in tail().step_by(5) {
        assert_eq!(replayed(&flipped(at), 0), Ok(vec![1, 2]), "byte {at}");
    }
    for at in BLOCK..BLOCK + 24 + 20 {
        assert_eq!(replayed(&flipped(at), 0), Err(Damage::At(BLOCK)), "byte {at}");
    }
    for at in (2 * BLOCK..tail().end - tail().start + 2 * BLOCK).step_by(5) {
        assert_eq!(replayed(&flipped(at), 0), Err(Damage::At(2 * BLOCK)), "byte {at}");
    }
    for at in 0..BLOCK {
        assert_eq!(replayed(&flipped(at), 0), Err(Damage::At(0)), "byte {at}");
    }
    assert_eq!(replayed(&[], 0), Err(Damage::At(0)));
}

#[test]
fn what_is_in_the_tables_already_is_not_replayed() {
    // The checkpoint was made, and the log not yet begun anew.
    let old = [small(4), large(5), small(6), small(7)];
    assert_eq!(replayed(&log_behind(3, &old), 7), Ok(vec![]));
    assert_eq!(replayed(&log_behind(3, &old), 5), Ok(vec![6, 7]));
    // Then it was, once and again.
    let anew = |new: &[Vec<u8>]| {
        let (mut file, new) = (log_behind(7, &old), new.concat());
        file[BLOCK..BLOCK + new.len()].copy_from_slice(&new);
        file
    };
    assert_eq!(replayed(&anew(&[small(8)]), 7), Ok(vec![8]));
    assert_eq!(replayed(&anew(&[small(8), small(9)]), 7), Ok(vec![8, 9]));
    assert_eq!(replayed(&anew(&[large(8)]), 7), Ok(vec![8]));
    assert_eq!(replayed(&anew(&[large(8)[..2 * BLOCK].to_vec()]), 7), Ok(vec![]), "half of it was written");
    assert_eq!(replayed(&anew(&[small(8), large(9)[..BLOCK].to_vec()]), 7), Ok(vec![8]));
}

#[test]
fn a_log_that_is_older_or_newer_than_the_database_beside_it_is_damage() {
    let frames = [small(4), large(5), small(6)];
    // Copied before, with and after its last frame; the database has frames up to 8.
    for (base, count) in [(3, 0), (3, 1), (3, 3), (6, 0)] {
        assert_eq!(
            replayed(&log_behind(base, &frames[..count]), 8),
            Err(Damage::IsOlder),
            "{count} behind {base}"
        );
    }
    assert_eq!(replayed(&log_behind(8, &frames), 8), Ok(vec![]), "written from its start again");
    assert_eq!(replayed(&log_behind(3, &frames), 6), Ok(vec![]), "not yet written from its start again");
    for base in [4, 9] {
        assert_eq!(replayed(&log_behind(base, &[]), 3), Err(Damage::DatabaseIsOlder), "behind {base}");
    }
}

#[test]
fn frames_that_are_missing_are_damage() {
    assert_eq!(replayed(&log_behind(3, &[small(5), small(6)]), 3), Err(Damage::At(BLOCK)));
    assert_eq!(replayed(&log_behind(3, &[small(4), small(6)]), 3), Err(Damage::At(2 * BLOCK)));
    assert_eq!(replayed(&log_behind(3, &[small(4), small(4)]), 3), Ok(vec![4]), "no later one is there");
}

#[test]
fn the_place_of_a_missing_frame_is_known_before_and_behind_older_ones() {
    // Frames 4 and 5 are of a checkpoint; 6 and 7 were written later, before these.
    let whole = log_behind(3, &[small(6), small(7), small(4), small(5)]);
    assert_eq!(replayed(&whole, 3), Ok(vec![4, 5, 6, 7]));
    for (block, checkpoint) in [(1, 5), (3, 3), (4, 3)] {
        let mut file = whole.clone();
        file[block * BLOCK + 30] ^= 1;
        assert_eq!(replayed(&file, checkpoint), Err(Damage::At(block * BLOCK)));
    }
}

#[test]
fn bytes_of_a_job_are_not_taken_for_a_frame() {
    // The bytes are at the beginning of a block, in a frame that was not written to its end.
    let bytes = sealed(GENERATION + 1, 9, b"made up");
    let frame = sealed(GENERATION, 2, &[&[0; BLOCK - 24 - 12][..], &bytes, &bytes].concat());
    let mut file = log(&[small(1), frame]);
    assert!(file[3 * BLOCK..].starts_with(&bytes), "it does not stand where it should");
    file[4 * BLOCK..5 * BLOCK].fill(0);
    assert_eq!(replayed(&file, 0), Ok(vec![1]));
}

#[test]
fn a_log_is_written_from_the_start_again_and_does_not_grow_by_that() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("some.redo");
    let mut log = Log::create(&path, GENERATION, 0, |file| Box::new(file)).unwrap();
    let mut lengths = Vec::new();
    for sequence in 1..=600_u64 {
        let mut frame = Frame::new();
        frame.put(3, b"key", &[&sequence.to_le_bytes()[..], &[1; 5000]].concat());
        log.append(&mut frame, sequence).unwrap();
        if sequence % 100 == 0 {
            let file = std::fs::read(&path).unwrap();
            assert_eq!(replayed(&file, sequence - 100), Ok((sequence - 99..=sequence).collect()));
            assert_eq!(log.bytes(), 100 * 2 * BLOCK as u64);
            lengths.push(file.len());
            restart(&mut log, sequence);
        }
    }
    assert!(lengths.iter().all(|length| *length == lengths[0]), "{lengths:?}");
}

#[test]
fn no_frame_is_written_over_those_of_a_checkpoint_that_is_not_safe() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("some.redo");
    // How many blocks are free before those frames: the next frames, of one or three blocks, fill them or do not.
    for free in 1..=7 {
        for length in [0, 2 * BLOCK] {
            let mut log = Log::create(&path, GENERATION, 0, |file| Box::new(file)).unwrap();
            let append = |log: &mut Log, sequence: u64, length: usize| {
                let mut frame = Frame::new();
                frame.put(3, b"key", &[&sequence.to_le_bytes()[..], &vec![1; length]].concat());
                log.append(&mut frame, sequence).unwrap();
            };
            (1..=free).for_each(|sequence| append(&mut log, sequence, 0));
            log.begin_checkpoint();
            append(&mut log, free + 1, 0);
            append(&mut log, free + 2, length);
            log.finish_checkpoint(free).unwrap();
            log.begin_checkpoint();
            for last in free + 3..free + 20 {
                append(&mut log, last, length);
                let file = std::fs::read(&path).unwrap();
                assert_eq!(replayed(&file, free), Ok((free + 1..=last).collect()), "{free} blocks");
                assert_eq!(replayed(&file, free + 2), Ok((free + 3..=last).collect()), "{free} blocks");
            }
        }
    }
}
