//! Tests of how records and bodies are packed.

use super::*;

#[test]
fn rows_that_are_cut_off_cannot_be_read() {
    let body = Body::pack("an-id", b"payload");
    assert_eq!(Body::unpack(&body).unwrap().id, "an-id");
    assert!(Body::unpack(&body[..4]).is_none() && Body::unpack(&[]).is_none());
    assert!(Record::unpack(1, &[0; 20]).is_none());
}

fn reserved(token: Option<[u8; TOKEN]>, put_off: u64) -> Record {
    Record {
        number: 9,
        shard: 0,
        locator: [3; 12],
        content: [4; 8],
        created: 1,
        imported: None,
        due: 2,
        topic: "t".into(),
        origin: "".into(),
        timeout: 0,
        attempts: 1,
        failures: 0,
        lost: 0,
        settled: 0,
        last: None,
        stage: Stage::Reserved { lease: 5, bits: [1; 8], deadline: 1_000, cancel: false, put_off },
        token,
    }
}

#[test]
fn a_lease_that_is_put_off_is_read_back_with_or_without_a_token() {
    for token in [None, Some([7; TOKEN])] {
        for put_off in [0, 1, 1 << 40] {
            let record = reserved(token, put_off);
            let back = Record::unpack(9, &record.pack()).unwrap();
            assert_eq!((back.token, back.stage), (record.token, record.stage), "{put_off}");
        }
        let [not, by_one] = [0, 1].map(|put_off| reserved(token, put_off).pack());
        assert_eq!(not, by_one[..not.len()]);
    }
}
