//! Paging: every result is on exactly one page, including results that are moved to the first or last place.

use fanfold_store::Store;
use fanfold_store::search::{SearchRequest, Searcher};
use serde_json::json;

use crate::search::{begin, say};
use crate::shorthand::*;

every_store! {
    pages_contain_every_result_once,
    pages_of_widened_queries_continue,
    pages_of_low_priority_hits_continue,
    no_results_after_the_last_page,
}

/// Returns the sessions on each page.
fn pages(store: &dyn Store, query: &str, limit: usize) -> Vec<Vec<String>> {
    let mut pages = Vec::new();
    loop {
        let offset = pages.iter().map(Vec::len).sum::<usize>();
        let request = json!({ "query": query, "limit": limit, "offset": offset });
        let reply =
            Searcher::new(store).answer_json(&serde_json::from_value::<SearchRequest>(request).unwrap());
        let name = |result: &serde_json::Value| result["session_id"].as_str().unwrap().to_owned();
        let page: Vec<String> = reply["results"].as_array().unwrap().iter().map(name).collect();
        if page.is_empty() {
            return pages;
        }
        assert!(page.len() <= limit, "{reply}");
        assert!(offset < 100, "there is no last page: {reply}");
        pages.push(page);
    }
}

fn pages_contain_every_result_once(store: &dyn Store) {
    for (i, source) in (0..11).map(|i| (i, if i % 4 == 3 { "cron" } else { "cli" })) {
        let name = format!("s{i}");
        begin(store, &name, i, source);
        say(store, &name, i, "user", &format!("the walrus {}", "and more ".repeat(i as usize)));
    }
    let mut all = Vec::new();
    for is_titled in [false, true] {
        if is_titled {
            // The session that was last except for the jobs.
            let late = format!("s{}", 10);
            write_at(store, 20, vec![title(&late, "walrus")]).unwrap();
        }
        for limit in [1, 2, 3, 4, 10] {
            let pages = pages(store, "walrus", limit);
            let mut found = pages.concat();
            let jobs: Vec<&String> = found.iter().skip(found.len().saturating_sub(2)).collect();
            assert!(jobs.iter().all(|job| ["s3", "s7"].contains(&job.as_str())), "{pages:?}");
            assert!(!is_titled || found[0] == "s10", "{pages:?}");
            assert!(pages.iter().rev().skip(1).all(|page| page.len() == limit), "{pages:?}");
            let in_order = found.clone();
            found.sort();
            found.dedup();
            assert_eq!(found.len(), 11, "{pages:?}");
            all.push(in_order);
        }
    }
    assert!(all[..5].iter().all(|found| *found == all[0]), "{all:?}");
    assert!(all[5..].iter().all(|found| *found == all[5]), "{all:?}");
}

fn pages_of_widened_queries_continue(store: &dyn Store) {
    for i in 0..5 {
        let name = format!("s{i}");
        begin(store, &name, i, "cli");
        say(store, &name, i, "user", &format!("xxwalrusxx{i}"));
    }
    let mut found = pages(store, "walrus", 2).concat();
    found.sort();
    assert_eq!(found, ["s0", "s1", "s2", "s3", "s4"]);
}

fn pages_of_low_priority_hits_continue(store: &dyn Store) {
    for i in 0..15 {
        let name = format!("s{i:02}");
        begin(store, &name, i, "cron");
        say(store, &name, i, "assistant", &format!("the walrus {i}"));
    }
    let mut found = pages(store, "walrus", 1).concat();
    found.sort();
    assert_eq!(found, (0..15).map(|i| format!("s{i:02}")).collect::<Vec<_>>());
}

fn no_results_after_the_last_page(store: &dyn Store) {
    for (i, word) in ["walrus", "walrus", "walrus", "xxwalrusxx", "yywalrusyy"].iter().enumerate() {
        let name = format!("s{i}");
        begin(store, &name, i as i64, "cli");
        say(store, &name, i as i64, "user", &format!("{word} {i}"));
    }
    // If whole words match, no further page with parts of words follows.
    for limit in [1, 2, 3] {
        let mut found = pages(store, "walrus", limit).concat();
        found.sort();
        assert_eq!(found, ["s0", "s1", "s2"], "{limit} on a page");
    }
}
