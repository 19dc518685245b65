//! Odd, broken and malicious files are read or skipped without a panic.

use fanfold_replay::{CommonKnowledge, read, replay};
use fanfold_testkit::generators::bodies::{BodyFormat, hostile, rich};
use fanfold_tokens::o200k;

use crate::options;

fn check(text: &str) -> usize {
    let records = read(text, "x");
    for record in &records {
        for outcome in replay(record, &options(&[300, 2000]), &CommonKnowledge::new(), o200k()) {
            let sums = outcome.sums;
            assert_eq!(sums.calls, sums.pressed.calls + sums.early.calls);
            for part in [&sums.pressed, &sums.early] {
                assert!(part.old_read <= part.old_recalled && part.old_recalled <= part.old);
                assert!(part.read <= part.there && part.there <= part.atoms);
                assert!(part.tool_only_read <= part.tool_only && part.lines_there <= part.lines);
            }
            assert!(sums.copied_there <= sums.copied && sums.coined_there <= sums.coined);
            assert!(sums.users_there <= sums.users);
            assert!(sums.bill.dollars >= 0.0 && sums.bill.read <= sums.bill.tokens);
        }
    }
    records.len()
}

#[test]
fn bodies_of_every_format_can_be_replayed() {
    for kind in BodyFormat::ALL {
        let n_read: usize = (0..40).map(|seed| check(&rich(kind, seed))).sum();
        assert!(n_read > 20, "{kind:?}: {n_read}");
        (0..60).for_each(|seed| {
            check(&hostile(kind, seed));
        });
    }
}

#[test]
fn torn_sessions_can_be_replayed() {
    let session: Vec<String> = (0..40)
        .map(|n: u32| {
            let parent = n.checked_sub(1).map_or("null".to_owned(), |n| format!("\"{n}\""));
            let (kind, block) = match n % 3 {
                0 => ("user", format!(r#"{{"type":"text","text":"see src/a_{n}.rs"}}"#)),
                1 => ("assistant", format!(r#"{{"type":"tool_use","id":"t{n}","name":"Read","input":{{"p":"src/a_{}.rs"}}}}"#, n - 1)),
                _ => ("user", format!(r#"{{"type":"tool_result","tool_use_id":"t{}","content":"fn a_{n}() {{}}"}}"#, n - 1)),
            };
            format!(
                r#"{{"type":"{kind}","uuid":"{n}","parentUuid":{parent},"message":{{"role":"{kind}","id":"m{n}","content":[{block}]}}}}"#
            )
        })
        .collect();
    assert_eq!(check(&session.join("\n")), 1);
    for seed in 0..60_usize {
        let mut torn = session.clone();
        // Remove, swap, duplicate and cut lines.
        torn.remove(seed * 7 % torn.len());
        let (a, b) = (seed * 11 % torn.len(), seed * 5 % torn.len());
        torn.swap(a, b);
        torn.insert(b, torn[a].clone());
        let line = &mut torn[seed % 38];
        line.truncate(line.len() * (seed % 4) / 3);
        check(&torn.join("\n"));
    }
}
