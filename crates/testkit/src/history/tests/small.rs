//! Small histories that are right, and that the checker once took for wrong ones.

use super::report;

const START: &str = r#"{"start":{"t":0,"wall":1795000000000000,"policy":1}}
{"policy":{"p":1,"delays":[100,200,400],"max":4,"jitter":0.1}}
{"policy":{"p":2,"delays":[100],"max":2,"jitter":0.0}}
{"clock":{"t":0,"ahead":0,"error":10}}
"#;

/// The violations in a small history, to which the start line is added and in which `DIGEST` becomes a digest.
fn wrong(lines: &str) -> Vec<String> {
    let digest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    let text = format!("{START}{}", lines.replace("DIGEST", digest));
    report(text.as_bytes()).violations.iter().map(ToString::to_string).collect()
}

#[test]
fn the_policy_of_any_submit_of_a_replaced_job_can_be_the_one_that_counts() {
    let lines = r#"{"submit":{"t":1000,"n":1,"job":"a/1","url":"http://h/","body":"DIGEST","headers":"DIGEST","delay":5000}}
{"ok":{"t":2000,"n":1,"status":201,"job":"a/1"}}
{"submit":{"t":3000,"n":2,"job":"a/1","url":"http://h/","body":"DIGEST","headers":"DIGEST","policy":2,"replace":true}}
{"ok":{"t":4000,"n":2,"status":200,"job":"a/1"}}
{"arrive":{"t":9000,"d":3,"job":"a/1","attempt":1,"due":1795000000004,"url":"http://h/","body":"DIGEST","headers":"DIGEST"}}
{"respond":{"t":10000,"d":3,"status":500}}
{"arrive":{"t":130000,"d":4,"job":"a/1","attempt":2,"due":1795000000120,"url":"http://h/","body":"DIGEST","headers":"DIGEST"}}
{"respond":{"t":131000,"d":4,"status":500}}
{"final":{"t":900000,"job":"a/1","state":"dead","attempts":2,"failures":2,"reason":"exhausted"}}
{"end":{"t":900000,"dumped":true,"drained":true}}
"#;
    assert_eq!(wrong(lines), [""; 0]);
    let three_failures = lines.replace("\"policy\":2,", "");
    assert_eq!(wrong(&three_failures).len(), 1, "the other policy allows more");
}

#[test]
fn a_job_of_a_key_may_come_before_the_submit_that_is_answered() {
    let lines = r#"{"submit":{"t":1000,"n":1,"job":"a/","url":"http://h/","body":"DIGEST","headers":"DIGEST","key":"k"}}
{"info":{"t":50000,"n":1}}
{"arrive":{"t":9000,"d":3,"job":"a/key-1","attempt":1,"due":1795000000005,"url":"http://h/","body":"DIGEST","headers":"DIGEST"}}
{"respond":{"t":10000,"d":3,"status":500}}
{"submit":{"t":60000,"n":2,"job":"a/","url":"http://h/","body":"DIGEST","headers":"DIGEST","key":"k"}}
{"ok":{"t":61000,"n":2,"status":200,"job":"a/key-1","state":"delayed","due":1795000000115}}
{"end":{"t":900000,"dumped":false,"drained":false}}
"#;
    assert_eq!(wrong(lines), [""; 0]);
    let other = lines.replace("\"job\":\"a/key-1\",\"state\"", "\"job\":\"a/key-2\",\"state\"");
    assert_eq!(wrong(&other).len(), 1, "the key has made another job");
}

#[test]
fn a_repeated_submit_may_be_answered_with_the_due_time_of_a_retry() {
    let lines = r#"{"submit":{"t":1000,"n":1,"job":"a/","url":"http://h/","body":"DIGEST","headers":"DIGEST","key":"k"}}
{"info":{"t":50000,"n":1}}
{"submit":{"t":60000,"n":2,"job":"a/","url":"http://h/","body":"DIGEST","headers":"DIGEST","key":"k"}}
{"arrive":{"t":61000,"d":3,"job":"a/key-1","attempt":1,"due":1795000000005,"url":"http://h/","body":"DIGEST","headers":"DIGEST"}}
{"respond":{"t":62000,"d":3,"status":500}}
{"ok":{"t":70000,"n":2,"status":200,"job":"a/key-1","state":"delayed","due":1795000000162}}
{"end":{"t":900000,"dumped":false,"drained":false}}
"#;
    assert_eq!(wrong(lines), [""; 0]);
    let early = lines.replace("\"due\":1795000000005", "\"due\":1795000000095");
    assert_eq!(wrong(&early).len(), 1, "its own due time counts");
}

#[test]
fn while_two_servers_take_writes_each_has_a_holder_of_a_lock() {
    let lines = r#"{"claim":{"t":1000,"asked":900,"lock":"shard-0","token":1,"pid":7}}
{"fault":{"t":2000,"f":1,"kind":"partition","class":"split"}}
{"claim":{"t":3000,"asked":2900,"lock":"shard-0","token":2,"pid":8}}
{"effect":{"t":4000,"asked":3900,"lock":"shard-0","token":1,"pid":7}}
{"healed":{"t":5000,"f":1}}
{"end":{"t":900000,"dumped":false,"drained":false}}
"#;
    assert_eq!(wrong(lines), [""; 0]);
    assert_eq!(wrong(&lines.replace("split", "store")).len(), 1, "there is one server");
    let late = lines.replace(r#""t":4000,"asked":3900"#, r#""t":7000,"asked":6900"#);
    assert_eq!(wrong(&late), [""; 0], "the other claim was made on the server that has given up");
    let earlier = late.replace(r#""t":3000,"asked":2900"#, r#""t":1900,"asked":1800"#);
    assert_eq!(wrong(&earlier).len(), 1, "both servers have the other claim");
}

/// A job that was accepted, and a loss at 50 ms.
const LOSS: &str = r#"{"submit":{"t":1000,"n":1,"job":"a/1","url":"http://h/","body":"DIGEST","headers":"DIGEST"}}
{"ok":{"t":30000,"n":1,"status":201,"job":"a/1","due":1795000000001}}
{"loss":{"t":50000,"since":20000}}
"#;
const END: &str = r#"{"end":{"t":900000,"dumped":true,"drained":true}}"#;

#[test]
fn what_was_accepted_in_the_time_that_was_lost_may_be_lost_and_nothing_else() {
    let lines = format!("{LOSS}{END}\n");
    assert_eq!(wrong(&lines), [""; 0]);
    for since in [40_000, 50_000] {
        let kept = lines.replace(r#""since":20000"#, &format!(r#""since":{since}"#));
        assert_eq!(wrong(&kept).len(), 1, "it was answered before {since}");
    }
    let later = lines.replace("1000,\"n\"", "51000,\"n\"").replace("30000,\"n\"", "55000,\"n\"");
    let later = later.replace("1795000000001", "1795000000051");
    assert_eq!(wrong(&later).len(), 1, "it was sent after the loss");
    let repeated = r#"{"submit":{"t":60000,"n":2,"job":"a/1","url":"http://h/","body":"DIGEST","headers":"DIGEST"}}
{"ok":{"t":70000,"n":2,"status":201,"job":"a/1","due":1795000000061}}"#;
    assert_eq!(wrong(&format!("{LOSS}{repeated}\n{END}\n")).len(), 1, "it was accepted once more");
}

#[test]
fn after_a_loss_a_job_may_be_as_it_was_earlier() {
    let attempt = r#"{"arrive":{"t":35000,"d":3,"job":"a/1","attempt":1,"due":1795000000001,"url":"http://h/","body":"DIGEST","headers":"DIGEST"}}
{"respond":{"t":36000,"d":3,"status":200}}
"#;
    let again = attempt.replace("35000", "80000").replace("36000", "81000").replace("\"d\":3", "\"d\":4");
    assert_eq!(wrong(&format!("{LOSS}{attempt}{again}{END}\n")), [""; 0]);
    let both_later = attempt.replace("35000", "75000").replace("36000", "76000");
    let whole = LOSS.replace(r#""t":50000"#, r#""t":500"#).replace(r#""since":20000"#, r#""since":400"#);
    assert_eq!(wrong(&format!("{whole}{both_later}{again}{END}\n")).len(), 2, "it came after the loss");
}

#[test]
fn an_alarm_without_a_loss_is_wrong() {
    let alarm = r#"{"alarm":{"t":60000,"pid":1}}"#;
    assert_eq!(wrong(&format!("{LOSS}{alarm}\n{END}\n")), [""; 0]);
    let nothing_lost = alarm.replace("60000", "40000");
    assert_eq!(wrong(&format!("{LOSS}{nothing_lost}\n{END}\n")).len(), 1);
}

#[test]
fn a_job_that_was_due_before_the_clock_stepped_back_may_be_delivered_after_that() {
    let lines = r#"{"submit":{"t":1000,"n":1,"job":"a/1","url":"http://h/","body":"DIGEST","headers":"DIGEST","delay":2000}}
{"clock":{"t":2000,"ahead":5000000,"error":10}}
{"ok":{"t":3000,"n":1,"status":201,"job":"a/1","due":1795000002001}}
{"clock":{"t":60000,"ahead":5000000,"error":10}}
{"clock":{"t":61000,"ahead":0,"error":10}}
{"arrive":{"t":70000,"d":3,"job":"a/1","attempt":1,"due":1795000002001,"url":"http://h/","body":"DIGEST","headers":"DIGEST"}}
{"respond":{"t":71000,"d":3,"status":200}}
{"end":{"t":900000,"dumped":true,"drained":true}}
"#;
    assert_eq!(wrong(lines), [""; 0]);
    let early = lines.replace("\"ahead\":5000000", "\"ahead\":1000000");
    assert_eq!(wrong(&early).len(), 1, "it never was as late as that");
}

#[test]
fn the_answer_of_a_reserve_may_come_when_a_later_attempt_is_over() {
    // The job is due at once and has three attempts; deadlines are 100 ms after the grant.
    let lines = r#"{"submit":{"t":1000,"n":1,"job":"a/1","body":"DIGEST","headers":"DIGEST"}}
{"ok":{"t":2000,"n":1,"status":201,"job":"a/1","due":1795000000001}}
{"reserve":{"t":3000,"n":2}}
{"fault":{"t":3500,"f":1,"kind":"stop-api","class":"process","pid":7}}
{"reserve":{"t":250000,"n":3}}
{"lease":{"t":251000,"n":3,"job":"a/1","token":"two","attempt":2,"deadline":1795000000351,"body":"DIGEST"}}
{"ok":{"t":251100,"n":3,"status":200}}
{"settle":{"t":252000,"n":4,"token":"two","kind":"finish"}}
{"ok":{"t":253000,"n":4,"status":200}}
{"healed":{"t":260000,"f":1}}
{"lease":{"t":261000,"n":2,"job":"a/1","token":"one","attempt":1,"deadline":1795000000103,"body":"DIGEST"}}
{"ok":{"t":261100,"n":2,"status":200}}
{"end":{"t":900000,"dumped":false,"drained":false}}
"#;
    assert_eq!(wrong(lines), [""; 0]);
    let asked_later = lines
        .replace("{\"reserve\":{\"t\":3000,\"n\":2}}\n", "")
        .replace("{\"healed\"", "{\"reserve\":{\"t\":260500,\"n\":2}}\n{\"healed\"");
    let found = wrong(&asked_later);
    assert!(found.iter().any(|line| line.contains("as attempt 1 after attempt 2")), "{found:?}");
}

#[test]
fn a_state_that_is_read_while_a_server_is_replaced_may_be_that_of_the_former_one() {
    let lines = r#"{"submit":{"t":1000,"n":1,"job":"a/1","body":"DIGEST","headers":"DIGEST","delay":60000}}
{"ok":{"t":2000,"n":1,"status":201,"job":"a/1","state":"delayed","due":1795000060001}}
{"fault":{"t":3000,"f":1,"kind":"fail-over","class":"store"}}
{"cancel":{"t":4000,"n":2,"job":"a/1"}}
{"ok":{"t":5000,"n":2,"status":200,"job":"a/1","state":"cancelled"}}
{"state":{"t":6000,"asked":5500,"job":"a/1","state":"cancelled"}}
{"state":{"t":7000,"asked":6500,"job":"a/1","state":"delayed"}}
{"healed":{"t":8000,"f":1}}
{"state":{"t":9000,"asked":8500,"job":"a/1","state":"cancelled"}}
{"end":{"t":900000,"dumped":false,"drained":false}}
"#;
    assert_eq!(wrong(lines), [""; 0]);
    let later = lines.replace(r#""t":7000,"asked":6500"#, r#""t":8400,"asked":8300"#);
    assert_eq!(wrong(&later).len(), 1, "the fail-over is over");
    let killed = lines.replace("fail-over", "kill-master");
    assert_eq!(wrong(&killed).len(), 1, "a master that is dead answers no read");
}

#[test]
fn a_success_that_a_fault_kept_from_being_stored_may_be_followed_by_failures() {
    let killed = r#"{"fault":{"t":10100,"f":9,"kind":"kill-up","class":"process","pid":7}}
{"exit":{"t":10200,"pid":7,"signal":9}}
{"healed":{"t":11000,"f":9}}
"#;
    let attempts = r#"{"submit":{"t":1000,"n":1,"job":"a/1","url":"http://h/","body":"DIGEST","headers":"DIGEST","policy":2}}
{"ok":{"t":2000,"n":1,"status":201,"job":"a/1"}}
{"arrive":{"t":9000,"d":3,"job":"a/1","attempt":1,"due":1795000000001,"url":"http://h/","body":"DIGEST","headers":"DIGEST"}}
{"respond":{"t":10000,"d":3,"status":200}}
KILLED{"arrive":{"t":200000,"d":4,"job":"a/1","attempt":2,"due":1795000000001,"url":"http://h/","body":"DIGEST","headers":"DIGEST"}}
{"respond":{"t":201000,"d":4,"status":500}}
{"arrive":{"t":310000,"d":5,"job":"a/1","attempt":3,"due":1795000000301,"url":"http://h/","body":"DIGEST","headers":"DIGEST"}}
{"respond":{"t":311000,"d":5,"status":500}}
{"final":{"t":900000,"job":"a/1","state":"dead","attempts":3,"failures":2,"reason":"exhausted"}}
"#;
    let lines = format!("{}{END}\n", attempts.replace("KILLED", killed));
    assert_eq!(wrong(&lines), [""; 0]);
    let about_success = |lines: &str| wrong(lines).iter().any(|what| what.contains("with success"));
    assert!(about_success(&lines.replace(killed, "")), "nothing kept the success from being stored");
    let later = ["10100", "10200", "11000"].iter().zip(["400100", "400200", "401000"]);
    let later = later.fold(lines.clone(), |lines, (t, later)| lines.replace(t, later));
    assert!(about_success(&later), "the fault came after the next attempt");
    let last = lines.replace(r#""d":3,"status":200"#, r#""d":3,"status":500"#);
    let last = last.replace(r#""d":5,"status":500"#, r#""d":5,"status":200"#);
    let last =
        last.replace("10100", "311100").replace("10200", "311200").replace("11000,\"f\"", "312000,\"f\"");
    assert!(about_success(&last), "a success that was not stored is delivered again before the job is dead");
}
