//! A provider that lowers its limit: the client does not notice.

use fanfold_core::Count as _;
use fanfold_testkit::clients::http::HttpClient;
use fanfold_testkit::contracts::api_rules::{find_regression, missing_user_text};
use fanfold_testkit::fakes::upstream::{Limit, Script, ScriptedReply, Upstream};
use fanfold_testkit::generators::bodies::BodyFormat;
use fanfold_testkit::generators::request_sequences::RequestSequence;
use fanfold_tokens::o200k;

use crate::running_proxy::{RunningProxy, folder};

#[test]
fn lowered_limit_is_invisible_to_the_client() {
    let kinds = [
        (BodyFormat::Chat, "/v1/chat/completions"),
        (BodyFormat::Responses, "/v1/responses"),
        (BodyFormat::Anthropic, "/v1/messages"),
    ];
    for (kind, path) in kinds {
        let folder = folder();
        let upstream = Upstream::start(Script::new(|_| ScriptedReply {
            text: "Yes.".to_owned(),
            ..ScriptedReply::default()
        }))
        .unwrap();
        let proxy = RunningProxy::start(folder.path(), &upstream.url(), &["--window", "200000"]);
        let mut caller = HttpClient::new(proxy.port);
        let bodies = RequestSequence::with_steps(kind, 3, 40).bodies();
        let half = bodies.len() / 2;
        for (i, body) in bodies.iter().enumerate() {
            if i == half {
                let most = o200k().count(body).0 as usize * 6 / 10;
                upstream.set_limit(Some(Limit::Tokens(most, o200k())));
            }
            let answered = caller.post(path, &[], body).unwrap();
            assert_eq!(
                answered.status,
                200,
                "{kind:?}, request {i} of {}: {}",
                bodies.len(),
                answered.text()
            );
            let forwarded = upstream.seen().last().unwrap().text();
            let wrong = find_regression(kind, body, &forwarded).or(missing_user_text(kind, body, &forwarded));
            assert_eq!(wrong, None, "{kind:?}, request {i}");
        }
        let seen = upstream.seen();
        let n_refused = seen.iter().filter(|seen| seen.is_too_long).count();
        println!("{kind:?}: {} requests of the client, {n_refused} refusals hidden from it", bodies.len());
        assert!(n_refused > 0, "the limit was never reached");
        assert!(
            n_refused <= 3,
            "the limit is forgotten: {n_refused} refusals in {} requests",
            bodies.len() - half
        );
    }
}
