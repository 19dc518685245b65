//! A scripted provider, and a client of it.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use fanfold_provider::{Client, Endpoint, ErrorClass, ModelAnswer, Prompt, ProviderError, Style, Timeouts};
use fanfold_testkit::fakes::upstream::{Script, ScriptedReply, Upstream};

pub(crate) const STYLES: [Style; 2] = [Style::OpenAi, Style::Anthropic];

/// A provider that says one sentence.
pub(crate) fn upstream() -> Upstream {
    Upstream::start(Script::new(|_| said("All of it is done, and well — so it is."))).unwrap()
}

pub(crate) fn said(text: &str) -> ScriptedReply {
    ScriptedReply { text: text.to_owned(), ..ScriptedReply::default() }
}

pub(crate) fn prompt() -> Prompt {
    Prompt { system: "You are brief.".to_owned(), user: "What is done?".to_owned(), max_tokens: 500 }
}

/// An endpoint that is asked once, by clocks that a test can wait for.
pub(crate) fn endpoint(style: Style, url: &str) -> Endpoint {
    let second = Duration::from_secs(10);
    let timeouts =
        Timeouts { connect: second, first: second, idle: second, total: second * 2, window: second };
    Endpoint { timeouts, n_retries: 0, ..Endpoint::new(style, url, "m") }
}

pub(crate) fn client(style: Style, url: &str) -> Client {
    Client::new(endpoint(style, url)).unwrap()
}

pub(crate) fn ask(style: Style, url: &str) -> Result<ModelAnswer, ProviderError> {
    client(style, url).ask(&prompt())
}

/// The fault of a request, which has the class that is expected.
pub(crate) fn fault(style: Style, url: &str, class: ErrorClass) -> ProviderError {
    let fault = ask(style, url).unwrap_err();
    assert_eq!(fault.class, class, "{fault}");
    assert!(fault.message.chars().count() <= 220, "{fault}");
    assert!(!fault.hint().is_empty());
    fault
}

/// A server that reads one request for each answer and writes the answer in the pieces given, with a pause between.
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
