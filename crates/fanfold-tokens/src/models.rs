//! The table of models: context window, longest answer and vocabulary of each.

use std::borrow::Cow;

use fanfold_core::Tokens;

/// One model, or all models whose names share a prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    /// A prefix of the model's name, in lower case, without the provider.
    pub pattern: Cow<'static, str>,
    /// The most tokens a request may have. If the provider has a lower limit for the prompt alone,
    /// this is the limit for the prompt.
    pub window: Tokens,
    /// The longest answer, in tokens.
    pub max_output: Tokens,
    /// The vocabulary to count with.
    pub family: Family,
}

/// The vocabulary of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// The vocabulary of GPT-4o and later.
    O200k,
    /// The vocabulary of GPT-3.5 and GPT-4.
    Cl100k,
    /// A vocabulary that is not public. Its count is estimated from the o200k count, high rather
    /// than low.
    Estimate {
        /// Tokens of the model per thousand tokens of o200k.
        permille: u32,
    },
}

/// The table of models. The user's entries take precedence over the built-in ones.
#[derive(Debug, Clone)]
pub struct Models {
    own: Vec<Model>,
}

impl Models {
    /// The built-in table.
    pub fn built_in() -> Models {
        Models { own: Vec::new() }
    }

    /// The table with another window for the models whose names begin with `pattern`.
    ///
    /// The other fields keep their values; unknown models get defaults.
    pub fn with_override(self, pattern: &str, window: Tokens) -> Models {
        let (max_output, family) = match self.find(pattern) {
            Some(model) => (model.max_output, model.family),
            None => (Tokens(8_192), Family::Estimate { permille: 1000 }),
        };
        self.with_model(Model { pattern: Cow::Owned(pattern.to_owned()), window, max_output, family })
    }

    /// The table with one more entry. It replaces an entry of the user with the same pattern.
    fn with_model(mut self, mut model: Model) -> Models {
        model.pattern = Cow::Owned(model.pattern.to_ascii_lowercase());
        self.own.retain(|own| own.pattern != model.pattern);
        self.own.push(model);
        self
    }

    /// The entry for a model name: the user's entries first, then the longest pattern.
    ///
    /// Provider prefixes are ignored: `openrouter/openai/gpt-5` and `us.anthropic.claude-opus-5`
    /// are found as `gpt-5` and `claude-opus-5`.
    pub fn find(&self, name: &str) -> Option<&Model> {
        let name = name.to_ascii_lowercase();
        longest(&self.own, &name).or_else(|| longest(&BUILT_IN, &name))
    }

    /// All entries: the user's own, then the built-in ones grouped by provider.
    pub fn all(&self) -> impl Iterator<Item = &Model> {
        self.own.iter().rev().chain(&BUILT_IN)
    }

    /// True if an entry is the user's own.
    pub fn is_own(&self, model: &Model) -> bool {
        self.own.contains(model)
    }

    /// The smallest window of those of the named models that are in the table.
    pub fn smallest_window(&self, names: &[&str]) -> Option<Tokens> {
        names.iter().filter_map(|name| self.find(name)).map(|model| model.window).min()
    }
}

fn longest<'a>(models: &'a [Model], name: &str) -> Option<&'a Model> {
    let base = name.rfind('/').map_or(0, |slash| slash + 1);
    let begins = |at: usize, model: &Model| name[at..].starts_with(&*model.pattern);
    let best = |is_match: &dyn Fn(&Model) -> bool| {
        models.iter().filter(|model| is_match(model)).max_by_key(|model| model.pattern.len())
    };
    best(&|model| begins(0, model) || begins(base, model)).or_else(|| {
        let mut after_dots = name[base..].match_indices('.').map(|(dot, _)| base + dot + 1);
        after_dots.find_map(|at| best(&|model| begins(at, model)))
    })
}

const fn model(pattern: &'static str, window: u64, max_output: u64, family: Family) -> Model {
    Model { pattern: Cow::Borrowed(pattern), window: Tokens(window), max_output: Tokens(max_output), family }
}

const O200K: Family = Family::O200k;
const CL100K: Family = Family::Cl100k;
/// Up to Claude 4.6: reported to use a fifth more tokens than GPT-4o.
const CLAUDE: Family = Family::Estimate { permille: 1200 };
/// Since Claude 4.7: up to a third more tokens than before, according to Anthropic.
const NEW_CLAUDE: Family = Family::Estimate { permille: 1400 };
/// Vocabularies about as large as o200k.
const LARGE: Family = Family::Estimate { permille: 1100 };
/// Vocabularies at most a quarter as large as o200k.
const SMALL: Family = Family::Estimate { permille: 1250 };

/// Windows from the providers' pages and litellm's model list, November 2026.
#[rustfmt::skip]
static BUILT_IN: [Model; 132] = [
    // OpenAI. A family's entry is the smallest of its members.
    model("gpt-3.5", 16_385, 4_096, CL100K),
    model("gpt-35", 16_385, 4_096, CL100K),
    model("gpt-4", 8_192, 4_096, CL100K),
    model("gpt-4-32k", 32_768, 4_096, CL100K),
    model("gpt-4-turbo", 128_000, 4_096, CL100K),
    model("gpt-4-1106", 128_000, 4_096, CL100K),
    model("gpt-4-0125", 128_000, 4_096, CL100K),
    model("gpt-4-vision", 128_000, 4_096, CL100K),
    model("gpt-4o", 128_000, 16_384, O200K),
    model("gpt-4o-2024-05-13", 128_000, 4_096, O200K),
    model("chatgpt-4o", 128_000, 16_384, O200K),
    model("gpt-4.1", 1_047_576, 32_768, O200K),
    model("gpt-4.5", 128_000, 16_384, O200K),
    model("gpt-5", 272_000, 128_000, O200K),
    model("gpt-5-chat", 128_000, 16_384, O200K),
    model("gpt-5.1-chat", 128_000, 16_384, O200K),
    model("gpt-5.2-chat", 128_000, 16_384, O200K),
    model("gpt-5.3-chat", 128_000, 16_384, O200K),
    model("gpt-5.3-codex-spark", 128_000, 32_000, O200K),
    model("gpt-5.4", 922_000, 128_000, O200K),
    model("gpt-5.4-mini", 272_000, 128_000, O200K),
    model("gpt-5.4-nano", 272_000, 128_000, O200K),
    model("gpt-5.5", 922_000, 128_000, O200K),
    model("gpt-5.6", 922_000, 128_000, O200K),
    model("gpt-5.6-cyber", 272_000, 128_000, O200K),
    model("gpt-6", 922_000, 128_000, O200K),
    model("gpt-oss", 131_072, 32_768, O200K),
    model("codex-mini", 200_000, 100_000, O200K),
    model("o1", 200_000, 100_000, O200K),
    model("o1-mini", 128_000, 65_536, O200K),
    model("o1-preview", 128_000, 32_768, O200K),
    model("o3", 200_000, 100_000, O200K),
    model("o4-mini", 200_000, 100_000, O200K),
    // Anthropic.
    model("claude-", 200_000, 8_192, NEW_CLAUDE),
    model("claude-2", 100_000, 4_096, CLAUDE),
    model("claude-3", 200_000, 4_096, CLAUDE),
    model("claude-3-5", 200_000, 8_192, CLAUDE),
    model("claude-3.5", 200_000, 8_192, CLAUDE),
    model("claude-3-7", 200_000, 64_000, CLAUDE),
    model("claude-3.7", 200_000, 64_000, CLAUDE),
    model("claude-sonnet-4", 200_000, 64_000, CLAUDE),
    model("claude-sonnet-4-6", 1_000_000, 128_000, CLAUDE),
    model("claude-sonnet-4.6", 1_000_000, 128_000, CLAUDE),
    model("claude-sonnet-5", 1_000_000, 128_000, NEW_CLAUDE),
    model("claude-opus-4", 200_000, 32_000, CLAUDE),
    model("claude-opus-4-5", 200_000, 64_000, CLAUDE),
    model("claude-opus-4.5", 200_000, 64_000, CLAUDE),
    model("claude-opus-4-6", 1_000_000, 128_000, CLAUDE),
    model("claude-opus-4.6", 1_000_000, 128_000, CLAUDE),
    model("claude-opus-4-7", 1_000_000, 128_000, NEW_CLAUDE),
    model("claude-opus-4.7", 1_000_000, 128_000, NEW_CLAUDE),
    model("claude-opus-4-8", 1_000_000, 128_000, NEW_CLAUDE),
    model("claude-opus-4.8", 1_000_000, 128_000, NEW_CLAUDE),
    model("claude-opus-5", 1_000_000, 128_000, NEW_CLAUDE),
    model("claude-haiku-4", 200_000, 64_000, CLAUDE),
    model("claude-haiku-5", 1_000_000, 128_000, NEW_CLAUDE),
    model("claude-fable-5", 1_000_000, 128_000, NEW_CLAUDE),
    model("claude-mythos", 1_000_000, 128_000, NEW_CLAUDE),
    // Google.
    model("gemini-", 1_048_576, 65_536, LARGE),
    model("gemini-1.5-flash", 1_048_576, 8_192, LARGE),
    model("gemini-1.5-pro", 2_097_152, 8_192, LARGE),
    model("gemini-2.0", 1_048_576, 8_192, LARGE),
    model("gemini-2.5-computer-use", 128_000, 64_000, LARGE),
    model("gemini-robotics", 131_072, 65_536, LARGE),
    model("gemma-3", 131_072, 8_192, LARGE),
    model("gemma-2", 8_192, 8_192, LARGE),
    // DeepSeek.
    model("deepseek-", 65_536, 8_192, LARGE),
    model("deepseek-chat", 131_072, 8_192, LARGE),
    model("deepseek-reasoner", 131_072, 65_536, LARGE),
    model("deepseek-v3.1", 131_072, 8_192, LARGE),
    model("deepseek-v3.2", 163_840, 65_536, LARGE),
    model("deepseek-v4", 1_000_000, 393_216, LARGE),
    model("deepseek-flash", 1_000_000, 393_216, LARGE),
    // Qwen.
    model("qwen", 32_768, 8_192, LARGE),
    model("qwen2.5", 131_072, 8_192, LARGE),
    model("qwen3", 131_072, 16_384, LARGE),
    model("qwen3-coder", 262_144, 65_536, LARGE),
    model("qwen3-coder-plus", 997_952, 65_536, LARGE),
    model("qwen3-coder-flash", 997_952, 65_536, LARGE),
    model("qwen3-next", 262_144, 65_536, LARGE),
    model("qwen3-max", 258_048, 65_536, LARGE),
    model("qwen3.5-plus", 991_808, 65_536, LARGE),
    model("qwen3.7", 991_808, 65_536, LARGE),
    model("qwen3.8", 991_808, 131_072, LARGE),
    model("qwen-plus", 129_024, 16_384, LARGE),
    model("qwen-turbo", 129_024, 16_384, LARGE),
    model("qwen-coder", 1_000_000, 16_384, LARGE),
    model("qwen-flash", 997_952, 32_768, LARGE),
    model("qwq", 98_304, 8_192, LARGE),
    // Meta.
    model("llama-2", 4_096, 2_048, SMALL),
    model("llama-3", 8_192, 4_096, LARGE),
    model("llama3", 8_192, 4_096, LARGE),
    model("llama3-", 131_072, 4_096, LARGE),
    model("llama3-8b", 8_192, 4_096, LARGE),
    model("llama3-70b", 8_192, 4_096, LARGE),
    model("llama3.", 131_072, 4_096, LARGE),
    model("llama-3.1", 131_072, 4_096, LARGE),
    model("llama-3.2", 131_072, 4_096, LARGE),
    model("llama-3.3", 131_072, 4_096, LARGE),
    model("llama-4-maverick", 1_000_000, 8_192, LARGE),
    model("llama-4-scout", 1_000_000, 8_192, LARGE),
    // Mistral.
    model("mistral-", 32_768, 8_192, SMALL),
    model("mistral-large", 131_072, 32_768, LARGE),
    model("mistral-large-latest", 262_144, 32_768, LARGE),
    model("mistral-large-3", 262_144, 32_768, LARGE),
    model("mistral-large-2512", 262_144, 32_768, LARGE),
    model("mistral-large-4", 1_048_576, 32_768, LARGE),
    model("mistral-medium", 131_072, 32_768, LARGE),
    model("mistral-small", 131_072, 32_768, LARGE),
    model("ministral-", 131_072, 32_768, LARGE),
    model("magistral-", 131_072, 32_768, LARGE),
    model("codestral", 128_000, 32_768, LARGE),
    model("devstral", 131_072, 32_768, LARGE),
    model("open-mistral-nemo", 128_000, 32_768, LARGE),
    // Moonshot.
    model("kimi-k2", 131_072, 32_768, LARGE),
    model("kimi-k2.", 262_144, 65_536, LARGE),
    model("kimi-k3", 1_048_576, 131_072, LARGE),
    model("moonshot-v1", 8_192, 8_192, LARGE),
    // Z.ai.
    model("glm-4", 128_000, 32_000, LARGE),
    model("glm-4.6", 200_000, 128_000, LARGE),
    model("glm-4.7", 200_000, 128_000, LARGE),
    model("glm-5.2", 1_000_000, 128_000, LARGE),
    model("glm-5.3", 1_000_000, 128_000, LARGE),
    model("glm-5", 200_000, 128_000, LARGE),
    // xAI.
    model("grok-3", 131_072, 32_768, LARGE),
    model("grok-4", 256_000, 64_000, LARGE),
    model("grok-4.20", 1_000_000, 64_000, LARGE),
    model("grok-4.3", 1_000_000, 64_000, LARGE),
    model("grok-4.5", 500_000, 64_000, LARGE),
    model("grok-4.6", 500_000, 64_000, LARGE),
    model("grok-4.7", 500_000, 64_000, LARGE),
    model("grok-code", 256_000, 64_000, LARGE),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn window(models: &Models, name: &str) -> Option<u64> {
        models.find(name).map(|model| model.window.0)
    }

    #[test]
    fn the_longest_pattern_wins() {
        let models = Models::built_in();
        let found =
            ["gpt-4", "gpt-4o-mini", "gpt-4.1-nano", "gpt-5.9", "o3-mini", "claude-opus-4-6-20260205"];
        assert_eq!(
            found.map(|name| window(&models, name)),
            [8_192, 128_000, 1_047_576, 272_000, 200_000, 1_000_000].map(Some)
        );
    }

    #[test]
    fn provider_prefixes_are_ignored() {
        let models = Models::built_in();
        let found = ["openrouter/openai/gpt-5", "us.anthropic.claude-3-5-sonnet-v1:0", "Qwen/Qwen3-32B"];
        assert_eq!(found.map(|name| window(&models, name)), [272_000, 200_000, 131_072].map(Some));
    }

    #[test]
    fn an_unknown_model_is_not_found() {
        let models = Models::built_in();
        assert_eq!(["", "/", "my-model", "text-é.", "llm"].map(|name| window(&models, name)), [None; 5]);
    }

    #[test]
    fn overrides_take_precedence() {
        let models = Models::built_in()
            .with_override("gpt-5", Tokens(100_000))
            .with_override("GPT-5-mini", Tokens(50_000))
            .with_override("local/", Tokens(16_000));
        let found = ["gpt-5-chat-latest", "openai/gpt-5-mini", "local/qwen3", "gpt-4o"];
        assert_eq!(found.map(|name| window(&models, name)), [100_000, 50_000, 16_000, 128_000].map(Some));
        assert_eq!(models.find("gpt-5-mini").map(|model| model.family), Some(Family::O200k));
        let again = models.with_override("gpt-5", Tokens(90_000));
        assert_eq!(window(&again, "gpt-5"), Some(90_000));
    }

    #[test]
    fn smallest_window_skips_unknown_models() {
        let models = Models::built_in();
        assert_eq!(models.smallest_window(&["gpt-4.1", "gpt-4o", "unknown"]), Some(Tokens(128_000)));
        assert_eq!(models.smallest_window(&["unknown"]), None);
    }

    #[test]
    fn every_entry_can_be_found() {
        let models = Models::built_in();
        for model in &BUILT_IN {
            assert_eq!(models.find(&model.pattern), Some(model));
            assert!(model.max_output <= model.window);
        }
    }
}
