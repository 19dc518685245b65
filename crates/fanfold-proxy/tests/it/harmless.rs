//! If anything fails, the request is sent unchanged, and the reason is counted.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use fanfold_proxy::Limits;
use serde_json::Value;

use crate::setting::{SLOW, Stage, StageOptions, chat, json_of, long_chat, outcome};

/// Checks that a body is sent unchanged for a reason.
async fn assert_forwarded_unchanged(stage: &Stage, body: &str, reason: &str) {
    let response = stage.chat(body).await;
    assert_eq!(outcome(&response), format!("as it came: {reason}"));
    drop(response.bytes().await.unwrap());
    assert_eq!(stage.upstream.seen().last().unwrap().text(), body);
    assert_eq!(stage.meter.status().totals.as_it_came.get(reason), Some(&1));
}

#[tokio::test(flavor = "multi_thread")]
async fn forwards_bodies_that_are_not_conversations() {
    let stage = Stage::new(StageOptions::default()).await;
    assert_forwarded_unchanged(&stage, "{ not JSON", "not_decoded").await;
    let stage = Stage::new(StageOptions::default()).await;
    assert_forwarded_unchanged(&stage, "", "not_decoded").await;
    let stage = Stage::new(StageOptions::default()).await;
    let deep = format!(r#"{{"model":"m","messages":{}{}}}"#, "[".repeat(200_000), "]".repeat(200_000));
    let response = stage.chat(&deep).await;
    assert!(
        outcome(&response).starts_with("as it came") || outcome(&response) == "whole",
        "{}",
        outcome(&response)
    );
    assert_eq!(stage.upstream.seen().last().unwrap().text(), deep);
}

#[tokio::test(flavor = "multi_thread")]
async fn forwards_bodies_after_the_deadline() {
    let limits = Limits { deadline: Duration::from_millis(200), ..Limits::default() };
    let stage = Stage::new(StageOptions { limits, ..StageOptions::default() }).await;
    stage.host.is_slow.store(true, Ordering::SeqCst);
    let began = Instant::now();
    assert_forwarded_unchanged(&stage, &chat(&long_chat(2)), "deadline").await;
    assert!(began.elapsed() < SLOW, "the request does not wait: {:?}", began.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn forwards_bodies_after_a_panic_or_without_settings() {
    let stage = Stage::new(StageOptions::default()).await;
    stage.host.is_panicking.store(true, Ordering::SeqCst);
    assert_forwarded_unchanged(&stage, &chat(&long_chat(2)), "panicked").await;
    stage.host.is_panicking.store(false, Ordering::SeqCst);
    let body = chat(&long_chat(2)).replacen("\"m\"", "\"without-terms\"", 1);
    assert_forwarded_unchanged(&stage, &body, "terms").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forwards_bodies_that_are_too_large_or_in_unknown_encodings() {
    let limits = Limits { body: 2000, ..Limits::default() };
    let stage = Stage::new(StageOptions { limits, ..StageOptions::default() }).await;
    assert_forwarded_unchanged(&stage, &chat(&long_chat(9)), "too_large").await;
    let bomb = zstd::encode_all(vec![b' '; 1 << 20].as_slice(), 3).unwrap();
    let packed = stage.post("/v1/chat/completions", bomb).header("content-encoding", "zstd");
    assert_eq!(outcome(&packed.send().await.unwrap()), "as it came: too_large");
    let mut bomb = Vec::new();
    brotli::BrotliCompress(
        &mut &vec![b' '; 1 << 20][..],
        &mut bomb,
        &brotli::enc::BrotliEncoderParams::default(),
    )
    .unwrap();
    let packed = stage.post("/v1/chat/completions", bomb).header("content-encoding", "br");
    assert_eq!(outcome(&packed.send().await.unwrap()), "as it came: too_large");
    for (way, body) in [("br", "abc"), ("compress", "abc")] {
        let packed = stage.post("/v1/chat/completions", body).header("content-encoding", way);
        assert_eq!(outcome(&packed.send().await.unwrap()), "as it came: packed", "{way}");
    }
}

async fn readiness(stage: &Stage) -> (u16, Value) {
    let response = stage.client.get(stage.url("/fanfold/ready")).send().await.unwrap();
    (response.status().as_u16(), json_of(response).await)
}

#[tokio::test(flavor = "multi_thread")]
async fn recreates_a_deleted_store() {
    let stage = Stage::new(StageOptions { window: 500, ..StageOptions::default() }).await;
    let messages = long_chat(12);
    assert_eq!(outcome(&stage.chat(&chat(&messages[..20])).await), "folded");
    let folder = stage.host.file.parent().unwrap().to_owned();
    std::fs::remove_dir_all(&folder).unwrap();
    let response = stage.chat(&chat(&messages)).await;
    assert_eq!(outcome(&response), "folded");
    assert!(stage.host.file.exists(), "later messages are stored in a new file");
    assert_eq!(readiness(&stage).await.0, 200);
    let session = fanfold_store::SessionId(crate::setting::session(&response));
    let engine = fanfold_proxy::Host::open(&*stage.host).unwrap();
    let (n_handles, broken) = engine.check_handles(&session).unwrap();
    assert!(n_handles > 0 && broken.is_empty(), "{n_handles} {broken:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_emptied_store_is_not_reported_as_ready_before_it_is_opened_again() {
    let stage = Stage::new(StageOptions { window: 500, ..StageOptions::default() }).await;
    let messages = long_chat(12);
    assert_eq!(outcome(&stage.chat(&chat(&messages[..20])).await), "folded");
    assert_eq!(readiness(&stage).await.0, 200);
    for file in [stage.host.file.clone(), stage.host.file.with_extension("db-wal")] {
        std::fs::File::create(file).unwrap();
    }
    let (status, told) = readiness(&stage).await;
    let n_bytes = std::fs::metadata(&stage.host.file).unwrap().len();
    assert!(status == 503 || n_bytes > 0, "{status} {told} {n_bytes}");
    tokio::time::sleep(Duration::from_millis(1100)).await;
    assert_eq!(readiness(&stage).await.0, 200);
    assert_eq!(outcome(&stage.chat(&chat(&messages)).await), "folded");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_store_does_not_turn_folding_off_and_gets_what_waited_when_it_returns() {
    let stage = Stage::new(StageOptions { window: 500, ..StageOptions::default() }).await;
    let messages = long_chat(12);
    assert_eq!(outcome(&stage.chat(&chat(&messages[..20])).await), "folded");
    let folder = stage.host.file.parent().unwrap().to_owned();
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::write(&folder, "a file where the folder was").unwrap();
    let response = stage.chat(&chat(&messages)).await;
    assert_eq!(outcome(&response), "folded");
    let session = fanfold_store::SessionId(crate::setting::session(&response));
    let (status, told) = readiness(&stage).await;
    assert_eq!((status, told["ready"].as_bool()), (503, Some(false)), "{told}");
    assert!(told["why"].as_str().unwrap().contains("s.db"), "{told}");
    let store = waiting(&stage).await;
    assert_eq!(
        (&store["sessions"], &store["messages"]),
        (&1.into(), &(messages.len() - 20).into()),
        "{store}"
    );
    assert!(store["error"].as_str().unwrap().contains("s.db"), "{store}");
    std::fs::remove_file(&folder).unwrap();
    until_stored(&stage).await;
    assert_eq!(readiness(&stage).await.0, 200);
    let engine = fanfold_proxy::Host::open(&*stage.host).unwrap();
    let row = engine.row(&session).unwrap();
    assert_eq!(row.n_messages as usize, messages.len());
    let (n_handles, broken) = engine.check_handles(&session).unwrap();
    assert!(n_handles > 0 && broken.is_empty(), "{n_handles} {broken:?}");
    assert_eq!(outcome(&stage.chat(&chat(&messages)).await), "folded");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_replaced_by_garbage_does_not_turn_folding_off() {
    for garbage in [&b"this is no database, and it is long enough to be read as one"[..], &[0xff; 20_000]] {
        let stage = Stage::new(StageOptions { window: 500, ..StageOptions::default() }).await;
        let messages = long_chat(12);
        let first = stage.chat(&chat(&messages[..20])).await;
        let file = &stage.host.file;
        for ending in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{}{ending}", file.display()));
        }
        std::fs::write(file, garbage).unwrap();
        let second = stage.chat(&chat(&messages)).await;
        assert_eq!((outcome(&first).as_str(), outcome(&second).as_str()), ("folded", "folded"));
        assert_eq!(crate::setting::session(&first), crate::setting::session(&second));
        std::fs::remove_file(file).unwrap();
        until_stored(&stage).await;
        assert_eq!(readiness(&stage).await.0, 200);
    }
}

/// The outage in the status.
async fn waiting(stage: &Stage) -> Value {
    let response = stage.client.get(stage.url("/fanfold/status")).send().await.unwrap();
    json_of(response).await["store"].clone()
}

/// Waits until nothing waits in memory.
async fn until_stored(stage: &Stage) {
    let stored = async {
        while !waiting(stage).await.is_null() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), stored).await.unwrap();
}
