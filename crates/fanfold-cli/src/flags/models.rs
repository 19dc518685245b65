//! What is known of models.

use clap::Args;
use fanfold_provider::Style;

pub(super) const MODELS_HELP: &str = "\
A local server runs a model with a window of its own, often smaller than the one
it was trained with. --url asks it: vLLM, llama.cpp, Ollama, LM Studio, TGI,
SGLang, LiteLLM, and what else lists its models with their windows.

Examples:
  fanfold models gpt-5
  fanfold models qwen3:8b --url http://localhost:11434
  fanfold models my-model --url https://host/v1 --key-env MY_KEY";

#[derive(Debug, Args)]
pub(crate) struct ModelsArgs {
    /// A model: what is known of it
    pub(crate) model: Option<String>,
    /// Ask the server at this address for the window that it runs the model with
    #[arg(long, value_name = "URL", requires = "model")]
    pub(crate) url: Option<String>,
    /// How the server is spoken to: openai, anthropic [default: by its address]
    #[arg(long, value_name = "STYLE", requires = "url")]
    pub(crate) style: Option<Style>,
    /// The environment variable with the key for it
    #[arg(long, value_name = "NAME", requires = "url")]
    pub(crate) key_env: Option<String>,
    /// A command that prints the key for it
    #[arg(long, value_name = "COMMAND", requires = "url", conflicts_with = "key_env")]
    pub(crate) key_command: Option<String>,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}
