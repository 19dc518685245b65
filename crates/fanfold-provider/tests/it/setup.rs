//! A scripted provider and a client for it.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use fanfold_provider::{
    Endpoint, ErrorClass, ModelAnswer, ModelClient, ModelPrompt, ProviderError, Timeouts,
};
use fanfold_testkit::fakes::upstream::{Script, ScriptedReply, Upstream};
use fanfold_wire::Provider;

pub(crate) const OPENAI: &str = "openai";
pub(crate) const ANTHROPIC: &str = "anthropic";
pub(crate) const PROVIDERS: [&str; 2] = [OPENAI, ANTHROPIC];

/// A provider that answers with one sentence.
pub(crate) fn upstream() -> Upstream {
    Upstream::start(Script::new(|_| say("All of it is done, and well — so it is."))).unwrap()
}

pub(crate) fn say(text: &str) -> ScriptedReply {
    ScriptedReply { text: text.to_owned(), ..ScriptedReply::default() }
}

pub(crate) fn prompt() -> ModelPrompt {
    ModelPrompt { system: "You are brief.".to_owned(), user: "What is done?".to_owned(), max_tokens: 500 }
}

/// An endpoint without retries, with timeouts that a test can wait for.
pub(crate) fn endpoint(provider: &str, url: &str) -> Endpoint {
    let second = Duration::from_secs(10);
    let timeouts =
        Timeouts { connect: second, first: second, idle: second, total: second * 2, window: second };
    Endpoint { timeouts, n_retries: 0, ..Endpoint::new(Provider::find(provider).unwrap(), url, "m") }
}

pub(crate) fn client(provider: &str, url: &str) -> ModelClient {
    ModelClient::new(endpoint(provider, url)).unwrap()
}

pub(crate) fn send(provider: &str, url: &str) -> Result<ModelAnswer, ProviderError> {
    client(provider, url).send_blocking(&prompt())
}

/// The error of a request, which must have the given class.
pub(crate) fn expect_error(provider: &str, url: &str, class: ErrorClass) -> ProviderError {
    let error = send(provider, url).unwrap_err();
    assert_eq!(error.class, class, "{error}");
    assert!(error.message.chars().count() <= 220, "{error}");
    assert!(!error.hint().is_empty());
    error
}

/// A server that reads one request per answer and writes each answer in pieces, with a pause after each piece.
pub(crate) fn raw(answers: Vec<Vec<Vec<u8>>>, pause: Duration) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for pieces in answers {
            let Ok((mut stream, _)) = listener.accept() else { return };
            let _ = stream.set_nodelay(true);
            read_request(&mut stream);
            for piece in pieces {
                if stream.write_all(&piece).is_err() {
                    break;
                }
                std::thread::sleep(pause);
            }
        }
    });
    url
}

fn read_request(stream: &mut TcpStream) {
    let mut request = Vec::new();
    let mut buffer = [0; 65536];
    loop {
        let text = String::from_utf8_lossy(&request).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return;
            }
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(n) => request.extend_from_slice(&buffer[..n]),
        }
    }
}
