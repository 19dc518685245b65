//! Parses the context window from the responses of known servers.

use serde_json::Value;

use super::{ServerWindow, WindowKind};

/// Fields for the served window in a list of models, most reliable first, with the server software they indicate.
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

/// Fields for the trained window.
const TRAINED: &[&str] =
    &["n_ctx_train", "max_position_embeddings", "model_max_length", "max_seq_len", "max_sequence_length"];

/// The window of a model in `GET /v1/models`.
pub(super) fn model_list(list: &Value, model: &str) -> Option<ServerWindow> {
    let models = [&list["data"], &list["models"], list].into_iter().find_map(Value::as_array)?;
    let entry = find_model(models, model)?;
    let objects =
        [entry, &entry["meta"], &entry["metadata"], &entry["top_provider"], &entry["capabilities"]["limits"]];
    // The window of the provider that is routed to is smaller than the maximum over all providers.
    let routed = token_count(&entry["top_provider"]["context_length"]);
    if let Some(tokens) = routed {
        return Some(ServerWindow { tokens, kind: WindowKind::Served, server: "OpenRouter" });
    }
    let owner = entry["owned_by"].as_str().unwrap_or_default();
    if let Some(tokens) = objects.iter().find_map(|object| token_count(&object["n_ctx"])) {
        return Some(ServerWindow { tokens, kind: WindowKind::Served, server: "llama.cpp" });
    }
    for (field, server) in SERVED {
        if let Some(tokens) = objects.iter().find_map(|object| token_count(&object[*field])) {
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
        TRAINED.iter().find_map(|field| objects.iter().find_map(|object| token_count(&object[*field])));
    let server = if owner == "llamacpp" { "llama.cpp" } else { "the provider" };
    trained.map(|tokens| ServerWindow { tokens, kind: WindowKind::Trained, server })
}

/// Finds the entry of a model by name or alias, or the only entry.
fn find_model<'v>(models: &'v [Value], model: &str) -> Option<&'v Value> {
    let is_named = |entry: &&Value| {
        ["id", "name", "model", "key", "model_name", "root"]
            .iter()
            .any(|key| entry[*key].as_str() == Some(model))
    };
    let is_alias = |entry: &&Value| {
        entry["aliases"].as_array().into_iter().flatten().any(|alias| alias.as_str() == Some(model))
    };
    // A server with one model accepts any name.
    let only = if let [only] = models { Some(only) } else { None };
    models.iter().find(is_named).or_else(|| models.iter().find(is_alias)).or(only)
}

/// `GET /props` of llama.cpp: the window of one slot.
pub(super) fn llama_cpp(response: &Value, _model: &str) -> Option<ServerWindow> {
    let slot = token_count(&response["default_generation_settings"]["n_ctx"])
        .or_else(|| token_count(&response["n_ctx"]))?;
    Some(ServerWindow { tokens: slot, kind: WindowKind::Served, server: "llama.cpp" })
}

/// `GET /api/ps` of Ollama: the window of a loaded model.
pub(super) fn ollama_running(response: &Value, model: &str) -> Option<ServerWindow> {
    let running = response["models"].as_array()?;
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

/// `POST /api/show` of Ollama: `num_ctx` is the served window; without it only the trained one is known.
pub(super) fn ollama_model(response: &Value, _model: &str) -> Option<ServerWindow> {
    let parameters = response["parameters"].as_str().unwrap_or_default();
    let configured =
        parameters.lines().find_map(|line| line.trim().strip_prefix("num_ctx")?.trim().parse().ok());
    if let Some(tokens) = configured {
        return Some(ServerWindow { tokens, kind: WindowKind::Served, server: "Ollama" });
    }
    let model_info = response["model_info"].as_object()?;
    let trained = model_info.iter().find(|(key, _)| key.ends_with(".context_length"));
    trained.and_then(|(_, value)| token_count(value)).map(|tokens| ServerWindow {
        tokens,
        kind: WindowKind::Trained,
        server: "Ollama",
    })
}

/// Compares model names; in Ollama a name without a tag means the tag `latest`.
fn is_same_model(name: &str, model: &str) -> bool {
    name == model
        || name.strip_suffix(":latest") == Some(model)
        || model.strip_suffix(":latest") == Some(name)
}

/// `GET /api/v0/models` of LM Studio.
pub(super) fn lm_studio(response: &Value, model: &str) -> Option<ServerWindow> {
    let entry = find_model(response["data"].as_array()?, model)?;
    let loaded = token_count(&entry["loaded_context_length"]).map(|tokens| (tokens, WindowKind::Served));
    let limit = || token_count(&entry["max_context_length"]).map(|tokens| (tokens, WindowKind::Trained));
    loaded.or_else(limit).map(|(tokens, kind)| ServerWindow { tokens, kind, server: "LM Studio" })
}

/// `GET /api/v1/models` of newer versions of LM Studio.
pub(super) fn lm_studio_new(response: &Value, model: &str) -> Option<ServerWindow> {
    let entry = find_model(response["models"].as_array()?, model)?;
    let mut loaded = entry["loaded_instances"].as_array().into_iter().flatten();
    let served = loaded
        .find_map(|instance| token_count(&instance["config"]["context_length"]))
        .map(|tokens| (tokens, WindowKind::Served));
    let limit = || token_count(&entry["max_context_length"]).map(|tokens| (tokens, WindowKind::Trained));
    served.or_else(limit).map(|(tokens, kind)| ServerWindow { tokens, kind, server: "LM Studio" })
}

/// `GET /info` of Text Generation Inference.
pub(super) fn tgi(response: &Value, _model: &str) -> Option<ServerWindow> {
    let limit =
        token_count(&response["max_total_tokens"]).or_else(|| token_count(&response["max_input_tokens"]))?;
    Some(ServerWindow { tokens: limit, kind: WindowKind::Served, server: "TGI" })
}

/// `GET /get_server_info` and `GET /get_model_info` of SGLang.
pub(super) fn sglang(response: &Value, _model: &str) -> Option<ServerWindow> {
    let fields = ["context_length", "max_context_length", "max_model_len", "max_req_input_len"];
    let limit = fields.iter().find_map(|field| token_count(&response[*field]))?;
    Some(ServerWindow { tokens: limit, kind: WindowKind::Served, server: "SGLang" })
}

/// `GET /model/info` of LiteLLM: several models may share a name, and the smallest window applies.
pub(super) fn litellm(response: &Value, model: &str) -> Option<ServerWindow> {
    let entries = response["data"].as_array()?;
    let named = entries.iter().filter(|entry| entry["model_name"].as_str() == Some(model));
    let limit = named.filter_map(|entry| {
        let info = &entry["model_info"];
        token_count(&info["max_input_tokens"]).or_else(|| token_count(&info["max_tokens"]))
    });
    limit.min().map(|tokens| ServerWindow { tokens, kind: WindowKind::Served, server: "LiteLLM" })
}

/// A number of tokens; zero counts as unknown.
fn token_count(value: &Value) -> Option<u64> {
    let number = value.as_u64().or_else(|| value.as_f64().map(|number| number as u64));
    number.or_else(|| value.as_str()?.parse().ok()).filter(|tokens| *tokens > 0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(info: Option<ServerWindow>, expected: Option<(u64, WindowKind, &str)>) {
        assert_eq!(info.map(|window| (window.tokens, window.kind, window.server)), expected);
    }

    #[test]
    fn windows_in_model_lists() {
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
    fn the_served_window_takes_precedence() {
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
    fn unexpected_responses_give_no_window() {
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
