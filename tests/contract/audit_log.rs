//! Cases of the stored audit log: entries are read newest first, each owner's apart, within bounds that no owner uses
//! up alone.

use ringback_core::clock::Timestamp;
use ringback_core::store_types::{
    AuditLogId, AuditLogOwner, AuditLogRow, MAX_AUDIT_LOG_ENTRY, MAX_AUDIT_LOG_ROWS, MAX_AUDIT_LOG_WEIGHT,
};
use ringback_store::Store;

use super::workbench::Workbench;

/// How many of the lightest entries there may be.
const MOST: usize = 10_000;

fn owner(name: &str) -> AuditLogOwner {
    AuditLogOwner::from_stored(name).expect("an owner")
}

fn id(n: usize) -> AuditLogId {
    AuditLogId::least_of(Timestamp::from_millis(1_795_000_000_000 + n as u64))
}

fn entry(of: &str, n: usize, written: &str) -> AuditLogRow {
    AuditLogRow { id: id(n), owner: owner(of), written: written.into() }
}

async fn append(store: &Store, rows: &[AuditLogRow]) {
    for rows in rows.chunks(MAX_AUDIT_LOG_ROWS) {
        store.append_audit_log(rows).await.expect("append");
    }
}

/// All entries of an owner, or of all owners, newest first, read in pages of `limit`.
async fn read(store: &Store, of: Option<&str>, limit: usize) -> Vec<AuditLogRow> {
    let (of, mut rows) = (of.map(owner), Vec::<AuditLogRow>::new());
    loop {
        let before = rows.last().map(|row| &row.id);
        let page = store.audit_log(of.as_ref(), before, limit).await.expect("read");
        let is_last = page.len() < limit;
        rows.extend(page);
        if is_last {
            return rows;
        }
    }
}

pub(crate) async fn entries_are_read_newest_first_and_each_owners_apart(bench: &Workbench) {
    let store = bench.store();
    assert_eq!(read(store, None, 10).await, []);
    let owners = ["", "acme", "*", "acm", "acme.b"];
    let mut rows: Vec<_> =
        (0..25).map(|n| entry(owners[n % owners.len()], n, &format!("{{\"n\":{n}}}"))).collect();
    append(store, &rows).await;
    rows.reverse();
    for limit in [1, 4, 100] {
        assert_eq!(read(store, None, limit).await, rows, "{limit}");
        for of in owners {
            let own: Vec<_> = rows.iter().filter(|row| row.owner == owner(of)).cloned().collect();
            assert_eq!(read(store, Some(of), limit).await, own, "{of:?} {limit}");
        }
    }
    assert_eq!(read(store, Some("other"), 10).await, []);
    let before = store.audit_log(None, Some(&id(3)), 10).await.expect("read");
    assert_eq!(before, rows[22..]);
}

pub(crate) async fn an_entry_that_is_added_again_is_there_once(bench: &Workbench) {
    let store = bench.store();
    let rows = [entry("acme", 1, "{}"), entry("", 2, "{}")];
    append(store, &rows).await;
    append(store, &[rows[1].clone(), rows[0].clone(), entry("acme", 3, "{}")]).await;
    let ids: Vec<_> = read(store, None, 10).await.into_iter().map(|row| row.id).collect();
    assert_eq!(ids, [id(3), id(2), id(1)]);
    assert_eq!(read(store, Some("acme"), 10).await.len(), 2);
    // A repeated entry does not add to the weight either.
    let text = "x".repeat(MAX_AUDIT_LOG_ENTRY);
    let long: Vec<_> = (10..110).map(|n| entry("acme", n, &text)).collect();
    for _ in 0..25 {
        append(store, &long).await;
    }
    assert_eq!(read(store, None, 256).await.len(), 103);
}

pub(crate) async fn any_text_is_kept_as_it_is(bench: &Workbench) {
    let store = bench.store();
    let texts = [
        "",
        "\0",
        "\"'\\\r\n\t",
        "é 🎉 \u{ffff}\u{10ffff}",
        "{\"a\":\"]]>--' OR 1=1; redis.call('FLUSHALL')\"}",
    ];
    let longest = "ü".repeat(MAX_AUDIT_LOG_ENTRY / 2);
    let texts = texts.iter().copied().chain([longest.as_str()]);
    let mut rows: Vec<_> = texts.enumerate().map(|(n, text)| entry("acme", n, text)).collect();
    append(store, &rows).await;
    rows.reverse();
    assert_eq!(read(store, None, 2).await, rows);
    assert_eq!(read(store, Some("acme"), 2).await, rows);
}

pub(crate) async fn many_entries_of_one_owner_do_not_push_out_those_of_the_others(bench: &Workbench) {
    let store = bench.store();
    let quiet: Vec<_> = (0..40).map(|n| entry(if n % 2 == 0 { "" } else { "acme" }, n, "{}")).collect();
    append(store, &quiet).await;
    let loud: Vec<_> = (40..MOST + 340).map(|n| entry("loud", n, "{}")).collect();
    append(store, &loud).await;
    let rows = read(store, None, MAX_AUDIT_LOG_ROWS).await;
    assert_eq!(rows.len(), MOST);
    assert_eq!(
        (read(store, Some(""), 100).await.len(), read(store, Some("acme"), 100).await.len()),
        (20, 20)
    );
    let kept = read(store, Some("loud"), MAX_AUDIT_LOG_ROWS).await;
    assert_eq!((kept.len(), &kept[0].id), (MOST - 40, &id(MOST + 339)));
    assert_eq!(kept.last().map(|row| &row.id), Some(&id(380)), "its oldest ones are gone");
    // An owner with few entries may have as many as the one with most.
    append(store, &(20_000..20_300).map(|n| entry("acme", n, "{}")).collect::<Vec<_>>()).await;
    assert_eq!(read(store, Some("acme"), 256).await.len(), 320);
    assert_eq!(read(store, None, 256).await.len(), MOST);
}

pub(crate) async fn long_entries_take_no_more_room_than_there_is(bench: &Workbench) {
    let store = bench.store();
    let text = "x".repeat(MAX_AUDIT_LOG_ENTRY);
    let rows: Vec<_> = (0..2_200).map(|n| entry(["", "acme"][n % 2], n, &text)).collect();
    append(store, &rows).await;
    let kept = read(store, None, MAX_AUDIT_LOG_ROWS).await;
    let weight: u64 = kept.iter().map(AuditLogRow::weight).sum();
    assert!(weight <= MAX_AUDIT_LOG_WEIGHT && weight > MAX_AUDIT_LOG_WEIGHT - 5_000, "{weight}");
    assert_eq!((&kept[0].id, kept.last().map(|row| &row.id)), (&id(2_199), Some(&id(2_200 - kept.len()))));
    let bytes: usize = kept.iter().map(|row| row.written.len()).sum();
    assert!(bytes <= 8 * 1024 * 1024, "{bytes}");
}
