//! Providers behind TLS: additional authorities, and HTTP/2 where it is offered.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Body;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::setting::{Stage, StageOptions, chat, json_of, long_chat, outcome};

/// A provider behind TLS, and the certificate of its authority.
struct Tls {
    address: SocketAddr,
    ca: String,
}

impl Tls {
    /// A provider with a certificate for a name and a list of protocols.
    async fn start(name: &str, protocols: &[&str]) -> Tls {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (key, mut params) = (KeyPair::generate().unwrap(), CertificateParams::new(Vec::new()).unwrap());
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca = params.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(params, key);
        let own_key = KeyPair::generate().unwrap();
        let own =
            CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&own_key, &issuer).unwrap();
        let own_key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(own_key.serialize_der()));
        let mut config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![own.der().clone()], own_key)
            .unwrap();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let service = service_fn(|request| async move { Ok::<_, Infallible>(answer(&request)) });
                    let _ = Builder::new(TokioExecutor::new())
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        Tls { address, ca }
    }

    fn url(&self) -> String {
        format!("https://localhost:{}", self.address.port())
    }
}

/// Responds with the protocol of the request.
fn answer(request: &http::Request<hyper::body::Incoming>) -> http::Response<Body> {
    let answer_text = format!("{:?} {}", request.version(), request.uri().path());
    let message = serde_json::json!({ "role": "assistant", "content": answer_text });
    let body = serde_json::json!({ "id": "1", "object": "chat.completion", "model": "m", "choices":
        [{ "index": 0, "message": message, "finish_reason": "stop" }] });
    let response = http::Response::builder().header("content-type", "application/json");
    response.body(Body::from(body.to_string())).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn trusts_an_additional_authority() {
    for (protocols, expected) in
        [(&["h2", "http/1.1"][..], "HTTP/2.0"), (&["http/1.1"], "HTTP/1.1"), (&[], "HTTP/1.1")]
    {
        let tls = Tls::start("localhost", protocols).await;
        let ca = Some(tls.ca.clone().into_bytes());
        let stage =
            Stage::with_provider_at(tls.url(), StageOptions { ca, window: 500, ..StageOptions::default() })
                .await;
        let response = stage.chat(&chat(&long_chat(12))).await;
        assert_eq!((response.status().as_u16(), outcome(&response).as_str()), (200, "folded"));
        let answer = json_of(response).await;
        let answer_text = answer["choices"][0]["message"]["content"].as_str().unwrap().to_owned();
        assert_eq!(answer_text, format!("{expected} /v1/chat/completions"));
    }
}

async fn error_text(stage: &Stage) -> String {
    let response = stage.chat(&chat(&long_chat(1))).await;
    assert_eq!(response.status(), 502);
    json_of(response).await["error"]["message"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn untrusted_certificates_get_a_hint() {
    let tls = Tls::start("localhost", &["h2"]).await;
    let unknown = error_text(&Stage::with_provider_at(tls.url(), StageOptions::default()).await).await;
    assert!(unknown.contains(&tls.url()) && unknown.contains("UnknownIssuer"), "{unknown}");
    assert!(unknown.contains("hint: if you trust it") && unknown.contains("--ca FILE"), "{unknown}");
    let other = Tls::start("api.example.com", &["h2"]).await;
    let ca = Some(other.ca.clone().into_bytes());
    let name = error_text(
        &Stage::with_provider_at(other.url(), StageOptions { ca, ..StageOptions::default() }).await,
    )
    .await;
    assert!(name.contains("api.example.com") && name.contains("belongs to another name"), "{name}");
    let plain = Stage::new(StageOptions::default()).await;
    let address = plain.upstream.url().replace("http://127.0.0.1", "https://localhost");
    let plain = error_text(&Stage::with_provider_at(address, StageOptions::default()).await).await;
    assert!(plain.contains("speaks TLS"), "{plain}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_a_ca_file_without_certificates() {
    for wrong in ["", "no certificate", "-----BEGIN CERTIFICATE-----\n@@@\n-----END CERTIFICATE-----\n"] {
        let stage = Stage::try_new(StageOptions { ca: Some(wrong.into()), ..StageOptions::default() }).await;
        let error = stage.err().unwrap_or_else(|| panic!("{wrong:?} was accepted"));
        assert!(error.to_string().contains("certificate"), "{error}");
    }
}

/// Tests SSL_CERT_FILE in a process of its own, because it must not be set in this one.
#[tokio::test(flavor = "multi_thread")]
async fn respects_ssl_cert_file() {
    let tls = Tls::start("localhost", &["h2"]).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.pem");
    std::fs::write(&file, &tls.ca).unwrap();
    let run_test = |file: Option<&std::path::Path>| {
        let mut command = tokio::process::Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "tls::request_over_tls", "--ignored"]).env("FANFOLD_TLS_AT", tls.url());
        command.env_remove("SSL_CERT_FILE").env_remove("SSL_CERT_DIR");
        if let Some(file) = file {
            command.env("SSL_CERT_FILE", file);
        }
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        async move { command.status().await.unwrap().success() }
    };
    assert!(run_test(Some(&file)).await);
    assert!(!run_test(None).await, "without it the certificate is not trusted");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "run by respects_ssl_cert_file"]
async fn request_over_tls() {
    let Ok(address) = std::env::var("FANFOLD_TLS_AT") else { return };
    let stage = Stage::with_provider_at(address, StageOptions::default()).await;
    assert_eq!(stage.chat(&chat(&long_chat(1))).await.status(), 200);
}
