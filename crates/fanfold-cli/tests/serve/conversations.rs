//! Conversations through the proxy: upstream requests are valid, contain user text verbatim, fit, and are the same
//! after a restart.

use fanfold_testkit::clients::http::HttpClient;
use fanfold_testkit::contracts::api_rules::{find_regression, missing_user_text};
use fanfold_testkit::fakes::upstream::{Script, ScriptedReply, Upstream};
use fanfold_testkit::generators::bodies::BodyFormat;
use fanfold_testkit::generators::request_sequences::RequestSequence;

use crate::running_proxy::{RunningProxy, folder, sessions};

const KINDS: [(BodyFormat, &str); 3] = [
    (BodyFormat::Chat, "/v1/chat/completions"),
    (BodyFormat::Responses, "/v1/responses"),
    (BodyFormat::Anthropic, "/v1/messages"),
];
const SMALL: [&str; 4] = ["--window", "4000", "--reserve", "0"];

fn provider() -> Upstream {
    Upstream::start(Script::new(|_| ScriptedReply { text: "I see.".to_owned(), ..ScriptedReply::default() }))
        .unwrap()
}

/// Sends a body, which must succeed, and returns the upstream request for it.
fn arrived(upstream: &Upstream, caller: &mut HttpClient, path: &str, body: &str) -> String {
    let answered =
        caller.post(path, &[("x-api-key", "dummy"), ("authorization", "Bearer dummy")], body).unwrap();
    assert_eq!(answered.status, 200, "{}\nfor {body}", answered.text());
    let seen = upstream.seen();
    let last = seen.last().unwrap();
    assert_eq!(last.header("authorization"), Some("Bearer dummy"), "credentials are forwarded");
    last.text()
}

#[test]
fn upstream_requests_are_valid_and_keep_user_text() {
    let n_talks = if std::env::var_os("FANFOLD_MANY").is_some() { 300 } else { 10 };
    for (kind, path) in KINDS {
        let (folder, upstream) = (folder(), provider());
        let proxy = RunningProxy::start(folder.path(), &upstream.url(), &SMALL);
        let mut caller = HttpClient::new(proxy.port);
        let (mut n_requests, mut n_changed) = (0, 0);
        for seed in 0..n_talks {
            for body in RequestSequence::new(kind, seed).bodies() {
                let forwarded = arrived(&upstream, &mut caller, path, &body);
                n_requests += 1;
                n_changed += usize::from(forwarded != body);
                let wrong =
                    find_regression(kind, &body, &forwarded).or(missing_user_text(kind, &body, &forwarded));
                assert_eq!(wrong, None, "seed {seed}\ncame: {body}\nleft: {forwarded}");
            }
        }
        let invalid = upstream.seen().into_iter().find(|seen| !seen.violations.is_empty());
        assert!(invalid.is_none(), "a request that the provider had to refuse: {invalid:?}");
        let folds: usize = sessions(folder.path()).iter().map(|session| session.n_folds).sum();
        println!(
            "{kind:?}: {n_talks} conversations, {n_requests} requests, {n_changed} changed, {folds} folds"
        );
        assert!(folds > 0, "nothing was folded: {}", proxy.stderr_text());
    }
}

#[test]
fn restart_changes_no_byte() {
    for (kind, path) in KINDS {
        let bodies = RequestSequence::with_steps(kind, 7, 24).bodies();
        let (folder, upstream) = (folder(), provider());
        let mut proxy = RunningProxy::start(folder.path(), &upstream.url(), &SMALL);
        let mut n_compared = 0;
        for (i, body) in bodies.iter().enumerate() {
            let mut forwarded = arrived(&upstream, &mut HttpClient::new(proxy.port), path, body);
            if i % 5 != 4 {
                continue;
            }
            // The provider's counts may change the view of the same body once more.
            let mut n_tries = 0;
            loop {
                let again = arrived(&upstream, &mut HttpClient::new(proxy.port), path, body);
                let is_settled = again == forwarded;
                forwarded = again;
                n_tries += 1;
                if is_settled {
                    break;
                }
                assert!(n_tries < 5, "{kind:?}: request {i} differs each time");
            }
            proxy.stop();
            proxy = RunningProxy::start(folder.path(), &upstream.url(), &SMALL);
            let after = arrived(&upstream, &mut HttpClient::new(proxy.port), path, body);
            assert!(
                after == forwarded,
                "{kind:?}, request {i}\nbefore the restart: {forwarded}\nafter: {after}"
            );
            n_compared += usize::from(after != *body);
        }
        let session_list = sessions(folder.path());
        assert_eq!(session_list.len(), 1, "one conversation is one session");
        assert!(session_list[0].n_folds > 0, "nothing was folded");
        println!(
            "{kind:?}: {} folds, {n_compared} folded views the same after a restart",
            session_list[0].n_folds
        );
        assert!(n_compared >= 3, "too few folded views were compared");
    }
}
