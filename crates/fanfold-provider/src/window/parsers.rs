//! What each server says of a model's window, read out of its answers.

use serde_json::Value;

use super::{ServerWindow, WindowKind};

/// Fields of a list of models that tell what a model is run with, the surest first, and who says so.
const SERVED: &[(&str, &str)] = &[
    ("max_model_len", "vLLM"),
    ("loaded_context_length", "LM Studio"),
    ("context_window", "the provider"),
    ("context_length", "the provider"),
    ("max_context_length", "the provider"),
    ("max_input_tokens", "the provider"),
    ("max_total_tokens", "the provider"),
    ("input_token_limit", "the provider"),
    ("inputTokenLimit", "the provider"),
];

/// Fields that tell what it was trained with.
const TRAINED: &[&str] =
    &["n_ctx_train", "max_position_embeddings", "model_max_length", "max_seq_len", "max_sequence_length"];

/// What a list of models says of one: `GET /v1/models`.
pub(super) fn model_list(list: &Value, model: &str) -> Option<ServerWindow> {
    let models = [&list["data"], &list["models"], list].into_iter().find_map(Value::as_array)?;
    let entry = find_model(models, model)?;
    let places =
        [entry, &entry["meta"], &entry["metadata"], &entry["top_provider"], &entry["capabilities"]["limits"]];
    // What the provider that would answer takes is less than what the best one takes.
    let routed = token_count(&entry["top_provider"]["context_length"]);
    if let Some(tokens) = routed {
        return Some(ServerWindow { tokens, kind: WindowKind::Served, server: "OpenRouter" });
    }
    let owner = entry["owned_by"].as_str().unwrap_or_default();
    if let Some(tokens) = places.iter().find_map(|place| token_count(&place["n_ctx"])) {
        return Some(ServerWindow { tokens, kind: WindowKind::Served, server: "llama.cpp" });
    }
    for (field, server) in SERVED {
        if let Some(tokens) = places.iter().find_map(|place| token_count(&place[*field])) {
            let server = match owner {
                "sglang" => "SGLang",
                "llamacpp" => "llama.cpp",
                _ => server,
            };
            return Some(ServerWindow { tokens, kind: WindowKind::Served, server });
        }
    }
    if let Some(tokens) = token_count(&entry["capabilities"]["limits"]["max_context_window_tokens"]) {
        return Some(ServerWindow { tokens, kind: WindowKind::Served, server: "the provider" });
    }
    let trained =
        TRAINED.iter().find_map(|field| places.iter().find_map(|place| token_count(&place[*field])));
    let server = if owner == "llamacpp" { "llama.cpp" } else { "the provider" };
    trained.map(|tokens| ServerWindow { tokens, kind: WindowKind::Trained, server })
}

/// The entry of a model: by its name, or the only one there is.
fn find_model<'v>(models: &'v [Value], model: &str) -> Option<&'v Value> {
    let is_named = |entry: &&Value| {
        ["id", "name", "model", "key", "model_name", "root"]
            .iter()
            .any(|key| entry[*key].as_str() == Some(model))
    };
    let is_alias = |entry: &&Value| {
        entry["aliases"].as_array().into_iter().flatten().any(|alias| alias.as_str() == Some(model))
    };
    // A server with one model answers to any name.
    let only = if let [only] = models { Some(only) } else { None };
    models.iter().find(is_named).or_else(|| models.iter().find(is_alias)).or(only)
}

/// `GET /props` of llama.cpp: the window of one slot.
pub(super) fn llama_cpp(said: &Value, _model: &str) -> Option<ServerWindow> {
    let slot =
        token_count(&said["default_generation_settings"]["n_ctx"]).or_else(|| token_count(&said["n_ctx"]))?;
    Some(ServerWindow { tokens: slot, kind: WindowKind::Served, server: "llama.cpp" })
}

/// `GET /api/ps` of Ollama: a model that is loaded is run with what stands there.
pub(super) fn ollama_running(said: &Value, model: &str) -> Option<ServerWindow> {
    let running = said["models"].as_array()?;
    let found = running.iter().find(|entry| {
        ["name", "model"]
            .iter()
            .any(|key| entry[*key].as_str().is_some_and(|name| is_same_model(name, model)))
    })?;
    token_count(&found["context_length"]).map(|tokens| ServerWindow {
        tokens,
        kind: WindowKind::Served,
        server: "Ollama",
    })
}

/// `POST /api/show` of Ollama: `num_ctx` is what it is run with, and without it nobody knows before it runs.
pub(super) fn ollama_model(said: &Value, _model: &str) -> Option<ServerWindow> {
    let parameters = said["parameters"].as_str().unwrap_or_default();
    let set = parameters.lines().find_map(|line| line.trim().strip_prefix("num_ctx")?.trim().parse().ok());
    if let Some(tokens) = set {
        return Some(ServerWindow { tokens, kind: WindowKind::Served, server: "Ollama" });
    }
    let known = said["model_info"].as_object()?;
    let trained = known.iter().find(|(key, _)| key.ends_with(".context_length"));
    trained.and_then(|(_, value)| token_count(value)).map(|tokens| ServerWindow {
        tokens,
        kind: WindowKind::Trained,
        server: "Ollama",
    })
}

/// Ollama takes a name without a tag for the newest.
fn is_same_model(name: &str, model: &str) -> bool {
    name == model
        || name.strip_suffix(":latest") == Some(model)
        || model.strip_suffix(":latest") == Some(name)
}

/// `GET /api/v0/models` of LM Studio.
pub(super) fn lm_studio(said: &Value, model: &str) -> Option<ServerWindow> {
    let entry = find_model(said["data"].as_array()?, model)?;
    let loaded = token_count(&entry["loaded_context_length"]).map(|tokens| (tokens, WindowKind::Served));
    let most = || token_count(&entry["max_context_length"]).map(|tokens| (tokens, WindowKind::Trained));
    loaded.or_else(most).map(|(tokens, of)| ServerWindow { tokens, kind: of, server: "LM Studio" })
}

/// `GET /api/v1/models` of newer versions of LM Studio.
pub(super) fn lm_studio_new(said: &Value, model: &str) -> Option<ServerWindow> {
    let entry = find_model(said["models"].as_array()?, model)?;
    let mut loaded = entry["loaded_instances"].as_array().into_iter().flatten();
    let served = loaded
        .find_map(|one| token_count(&one["config"]["context_length"]))
        .map(|tokens| (tokens, WindowKind::Served));
    let most = || token_count(&entry["max_context_length"]).map(|tokens| (tokens, WindowKind::Trained));
    served.or_else(most).map(|(tokens, of)| ServerWindow { tokens, kind: of, server: "LM Studio" })
}

/// `GET /info` of Text Generation Inference.
pub(super) fn tgi(said: &Value, _model: &str) -> Option<ServerWindow> {
    let most = token_count(&said["max_total_tokens"]).or_else(|| token_count(&said["max_input_tokens"]))?;
    Some(ServerWindow { tokens: most, kind: WindowKind::Served, server: "TGI" })
}

/// `GET /get_server_info` and `GET /get_model_info` of SGLang.
pub(super) fn sglang(said: &Value, _model: &str) -> Option<ServerWindow> {
    let fields = ["context_length", "max_context_length", "max_model_len", "max_req_input_len"];
    let most = fields.iter().find_map(|field| token_count(&said[*field]))?;
    Some(ServerWindow { tokens: most, kind: WindowKind::Served, server: "SGLang" })
}

/// `GET /model/info` of LiteLLM: the same name may stand for several models, and the smallest of them counts.
pub(super) fn litellm(said: &Value, model: &str) -> Option<ServerWindow> {
    let entries = said["data"].as_array()?;
    let named = entries.iter().filter(|entry| entry["model_name"].as_str() == Some(model));
    let most = named.filter_map(|entry| {
        let told = &entry["model_info"];
        token_count(&told["max_input_tokens"]).or_else(|| token_count(&told["max_tokens"]))
    });
    most.min().map(|tokens| ServerWindow { tokens, kind: WindowKind::Served, server: "LiteLLM" })
}

/// A number of tokens; none or zero means that nobody knows.
fn token_count(value: &Value) -> Option<u64> {
    let number = value.as_u64().or_else(|| value.as_f64().map(|number| number as u64));
    number.or_else(|| value.as_str()?.parse().ok()).filter(|tokens| *tokens > 0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(told: Option<ServerWindow>, expected: Option<(u64, WindowKind, &str)>) {
        assert_eq!(told.map(|window| (window.tokens, window.kind, window.server)), expected);
    }

    #[test]
    fn lists_of_models() {
        use WindowKind::{Served, Trained};
        let list = |entry: Value| json!({ "object": "list", "data": [{ "id": "other", "max_model_len": 7 }, entry] });
        check(
            model_list(&list(json!({ "id": "m", "owned_by": "vllm", "max_model_len": 32768 })), "m"),
            Some((32768, Served, "vLLM")),
        );
        check(
            model_list(&list(json!({ "id": "m", "owned_by": "sglang", "max_model_len": 4096 })), "m"),
            Some((4096, Served, "SGLang")),
        );
        let llama = json!({ "id": "m", "owned_by": "llamacpp", "meta": { "n_ctx_train": 131_072 } });
        check(model_list(&list(llama), "m"), Some((131_072, Trained, "llama.cpp")));
        let llama =
            json!({ "id": "m", "owned_by": "llamacpp", "meta": { "n_ctx": 8192, "n_ctx_train": 131_072 } });
        check(model_list(&list(llama), "m"), Some((8192, Served, "llama.cpp")));
        let routed =
            json!({ "id": "m", "context_length": 200_000, "top_provider": { "context_length": 131_072 } });
        check(model_list(&list(routed), "m"), Some((131_072, Served, "OpenRouter")));
        check(model_list(&list(json!({ "id": "m" })), "m"), None);
        check(model_list(&list(json!({ "id": "m", "context_window": null })), "m"), None);
        check(model_list(&list(json!({ "id": "x" })), "m"), None);
        check(
            model_list(&json!([{ "id": "m", "context_length": 9000 }]), "m"),
            Some((9000, Served, "the provider")),
        );
        check(
            model_list(&json!({ "data": [{ "id": "/models/q.gguf", "max_model_len": 5 }] }), "m"),
            Some((5, Served, "vLLM")),
        );
        check(model_list(&json!({ "error": "Unexpected endpoint" }), "m"), None);
    }

    #[test]
    fn what_a_model_is_run_with_counts() {
        use WindowKind::{Served, Trained};
        let shown = |parameters: &str| json!({ "parameters": parameters, "model_info": { "general.architecture": "llama", "llama.context_length": 131_072 } });
        check(
            ollama_model(&shown("stop \"x\"\nnum_ctx                        16384"), "m"),
            Some((16384, Served, "Ollama")),
        );
        check(ollama_model(&shown("stop \"x\""), "m"), Some((131_072, Trained, "Ollama")));
        let running =
            json!({ "models": [{ "name": "m:latest", "model": "m:latest", "context_length": 4096 }] });
        check(ollama_running(&running, "m"), Some((4096, Served, "Ollama")));
        check(ollama_running(&running, "n"), None);
        let studio = json!({ "data": [{ "id": "m", "state": "loaded", "max_context_length": 40960, "loaded_context_length": 8192 }] });
        check(lm_studio(&studio, "m"), Some((8192, Served, "LM Studio")));
        let studio = json!({ "data": [{ "id": "m", "state": "not-loaded", "max_context_length": 40960 }] });
        check(lm_studio(&studio, "m"), Some((40960, Trained, "LM Studio")));
        let studio = json!({ "models": [{ "key": "m", "max_context_length": 40960, "loaded_instances": [{ "id": "m", "config": { "context_length": 6000 } }] }] });
        check(lm_studio_new(&studio, "m"), Some((6000, Served, "LM Studio")));
        let props = json!({ "default_generation_settings": { "n_ctx": 8192 }, "total_slots": 4 });
        check(llama_cpp(&props, "m"), Some((8192, Served, "llama.cpp")));
        check(
            tgi(&json!({ "max_total_tokens": 4096, "max_input_tokens": 4095 }), "m"),
            Some((4096, Served, "TGI")),
        );
        check(
            sglang(&json!({ "context_length": null, "max_req_input_len": 32762 }), "m"),
            Some((32762, Served, "SGLang")),
        );
        let lite = json!({ "data": [
            { "model_name": "m", "model_info": { "max_input_tokens": 200_000, "max_tokens": 8192 } },
            { "model_name": "m", "model_info": { "max_input_tokens": 128_000 } },
            { "model_name": "n", "model_info": { "max_input_tokens": 4096 } } ] });
        check(litellm(&lite, "m"), Some((128_000, Served, "LiteLLM")));
    }

    #[test]
    fn what_is_odd_says_nothing() {
        for odd in [json!(null), json!({}), json!([]), json!("x"), json!({ "data": "x", "models": 7 })] {
            for read in [
                model_list,
                llama_cpp,
                ollama_running,
                ollama_model,
                lm_studio,
                lm_studio_new,
                tgi,
                sglang,
                litellm,
            ] {
                check(read(&odd, "m"), None);
            }
        }
    }
}
