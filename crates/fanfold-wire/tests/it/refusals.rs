//! Errors of real providers and servers, with other numbers: refusals for length, and similar errors. Public issues are
//! named as sources.

use fanfold_wire::reply::{PromptFill, refusal, too_much_output};

/// The source, the status, the body, and the expected cause, limit, size and output.
type Case = (&'static str, u16, &'static str, &'static str);

const REFUSALS: &[Case] = &[
    // stackblitz/bolt.new#1748
    (
        "Anthropic",
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 213462 tokens > 200000 maximum"},"request_id":"req_1"}"#,
        "prompt 200000 213462 -",
    ),
    (
        "Anthropic, through a server that escapes",
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 209353 tokens \u003e 199999 maximum"}}"#,
        "prompt 199999 209353 -",
    ),
    (
        "Anthropic, with the output",
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000, decrease input length or `max_tokens` and try again"}}"#,
        "total 200000 178959 64000",
    ),
    (
        "Anthropic, body",
        413,
        r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#,
        "body - - -",
    ),
    (
        "Anthropic, long tier",
        429,
        r#"{"type":"error","error":{"type":"rate_limit_error","message":"Extra usage is required for long context requests."}}"#,
        "prompt 200000 - -",
    ),
    (
        "Anthropic on Vertex",
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"Prompt is too long"}}"#,
        "prompt - - -",
    ),
    (
        "Anthropic through LiteLLM",
        400,
        r#"{"error":{"message":"litellm.BadRequestError: litellm.ContextWindowExceededError: AnthropicError - {\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"prompt is too long: 209353 tokens > 199999 maximum\"}}","type":null,"param":null,"code":"400"}}"#,
        "prompt 199999 209353 -",
    ),
    (
        "Anthropic through LiteLLM, as bytes",
        500,
        r#"litellm.BadRequestError: AnthropicException - b'{"type":"error","error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 174167 + 64000 > 200000, decrease input length or `max_tokens` and try again"}}'"#,
        "total 200000 174167 64000",
    ),
    // webtimemachine/wtm2#579
    (
        "OpenAI Chat",
        400,
        r#"{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 204308 tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
        "prompt 128000 204308 -",
    ),
    // FlowiseAI/Flowise#1711
    (
        "OpenAI Chat, with tools",
        400,
        r#"{"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 9411 tokens (8000 in the messages, 1411 in the functions). Please reduce the length of the messages or functions.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
        "prompt 8192 8000 -",
    ),
    // Azure/azure-sdk-for-net#41892
    (
        "OpenAI Chat, with the completion",
        400,
        r#"{"error":{"message":"This model's maximum context length is 16385 tokens. However, you requested 17000 tokens (15000 in the messages, 2000 in the completion). Please reduce the length of the messages or completion.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
        "total 16385 15000 2000",
    ),
    // AstrBotDevs/AstrBot#1
    (
        "OpenAI Completions",
        400,
        r#"{"error":{"message":"This model's maximum context length is 4097 tokens, however you requested 6539 tokens (6283 in your prompt; 256 for the completion). Please reduce your prompt; or completion length.","type":"invalid_request_error","param":null,"code":null}}"#,
        "prompt 4097 6283 256",
    ),
    (
        "OpenAI Responses",
        400,
        r#"{"error":{"type":"invalid_request_error","code":"context_length_exceeded","message":"Your input exceeds the context window of this model. Please adjust your input and try again.","param":"input"}}"#,
        "prompt - - -",
    ),
    (
        "OpenAI, configured limit",
        400,
        r#"{"error":{"message":"Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 477469 tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
        "prompt 272000 477469 -",
    ),
    (
        "OpenAI, one string",
        400,
        r#"{"error":{"message":"Invalid 'messages[1].content': string too long. Expected a string with maximum length 1048576, but got a string with length 1540820 instead.","type":"invalid_request_error","param":"messages[1].content","code":"string_above_max_length"}}"#,
        "body - - -",
    ),
    (
        "OpenAI Responses, one string",
        400,
        r#"{"error":{"message":"Invalid 'input[3].output': string too long. Expected a string with maximum length 10485760, but got a string with length 12000000 instead.","type":"invalid_request_error","param":"input[3].output","code":"string_above_max_length"}}"#,
        "body - - -",
    ),
    (
        "OpenAI, number of messages",
        400,
        r#"{"error":{"message":"Invalid 'messages': array too long. Expected an array with maximum length 2048, but got an array with length 2300 instead.","type":"invalid_request_error","param":"messages","code":"array_above_max_length"}}"#,
        "body - - -",
    ),
    // MicrosoftDocs/azure-docs#114113
    (
        "Azure OpenAI",
        400,
        r#"{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 131482 tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
        "prompt 128000 131482 -",
    ),
    (
        "vLLM",
        400,
        r#"{"object":"error","message":"This model's maximum context length is 131072 tokens. However, you requested 156632 tokens (152536 in the messages, 4096 in the completion). Please reduce the length of the messages or completion.","type":"BadRequestError","param":null,"code":400}"#,
        "prompt 131072 152536 4096",
    ),
    (
        "vLLM, newer",
        400,
        r#"{"error":{"message":"This model's maximum context length is 262144 tokens. However, you requested 128000 output tokens and your prompt contains at least 134145 input tokens, for a total of at least 262145 tokens. Please reduce the length of the input prompt or the number of requested output tokens. (parameter=input_tokens, value=134145)","type":"BadRequestError","param":"input_tokens","code":400}}"#,
        "total 262144 134145 128000",
    ),
    (
        "vLLM, room for the output",
        400,
        r#"{"error":{"message":"'max_tokens' or 'max_completion_tokens' is too large: 8192. This model's maximum context length is 8192 tokens and your request has 5012 input tokens (8192 > 8192 - 5012).","type":"BadRequestError","param":null,"code":400}}"#,
        "total 8192 5012 8192",
    ),
    (
        "vLLM, no room at all",
        400,
        r#"{"object":"error","message":"max_tokens must be at least 1, got -186.","type":"BadRequestError","param":null,"code":400}"#,
        "prompt - - -",
    ),
    (
        "vLLM, multimodal",
        400,
        r#"{"error":{"message":"The decoder prompt (length 163840) is longer than the maximum model length of 131072. Make sure that `max_model_len` is no smaller than the number of text tokens plus multimodal tokens. For image inputs, the number of image tokens depends on the number of images, and possibly their aspect ratios as well.","type":"BadRequestError","param":null,"code":400}}"#,
        "prompt 131072 163840 -",
    ),
    // vllm-project/vllm#12165
    (
        "vLLM, older multimodal",
        500,
        r#"{"object":"error","message":"The prompt (total length 25938) is too long to fit into the model (context length 4096). Make sure that `max_model_len` is no smaller than the number of text tokens plus multimodal tokens.","type":"InternalServerError","param":null,"code":500}"#,
        "prompt 4096 25938 -",
    ),
    (
        "SGLang",
        400,
        r#"{"object":"error","message":"The input (61709 tokens) is longer than the model's context length (40960 tokens).","type":"BadRequestError","param":null,"code":400}"#,
        "prompt 40960 61709 -",
    ),
    (
        "SGLang, memory",
        400,
        r#"{"object":"error","message":"Input length (160062 tokens) exceeds the maximum allowed length (59862 tokens). Use a shorter input or enable --allow-auto-truncate.","type":"BadRequestError","param":null,"code":400}"#,
        "prompt 59862 160062 -",
    ),
    // anomalyco/models.dev#4422
    (
        "SGLang, with the completion",
        400,
        r#"{"object":"error","message":"Requested token count exceeds the model's maximum context length of 131072 tokens. You requested a total of 139000 tokens: 131000 tokens from the input messages and 8000 tokens for the completion. Please reduce the number of tokens in the input messages or the completion to fit within the limit.","type":"BadRequestError","param":null,"code":400}"#,
        "total 131072 131000 8000",
    ),
    // ggml-org/llama.cpp#17284
    (
        "llama.cpp",
        400,
        r#"{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":14429,"n_ctx":8192}}"#,
        "prompt 8192 14429 -",
    ),
    // ggml-org/llama.cpp#15780, oobabooga/textgen#7257
    (
        "llama.cpp, older, under 200",
        200,
        r#"{"error":{"code":500,"message":"the request exceeds the available context size. try increasing the context size or enable context shift","type":"exceed_context_size_error","n_prompt_tokens":1407,"n_ctx":256}}"#,
        "prompt 256 1407 -",
    ),
    (
        "llama.cpp, newest",
        400,
        r#"{"error":{"code":400,"message":"request (15953 tokens) exceeds the available context size (12288 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":15953,"n_ctx":12288}}"#,
        "prompt 12288 15953 -",
    ),
    // fedora-copr/logdetective-website#193
    (
        "llama-cpp-python",
        500,
        r#"{"error":{"message":"Requested tokens (2285) exceed context window of 2048","type":"internal_server_error","param":null,"code":null}}"#,
        "prompt 2048 2285 -",
    ),
    // Gitlawb/openclaude#353
    (
        "LM Studio",
        400,
        r#"{"error":"The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 13055>= n_ctx: 4096). Try to load the model with a larger context length, or provide a shorter input."}"#,
        "prompt 4096 13055 -",
    ),
    // cline/cline#3664
    (
        "LM Studio, older",
        400,
        r#"{"error":"Trying to keep the first 10136 tokens when context the overflows. However, the model is loaded with context length of only 7866 tokens, which is not enough. Try to load the model with a larger context length, or provide a shorter input. Error Data: n/a, Additional Data: n/a"}"#,
        "prompt 7866 10136 -",
    ),
    // dyad-sh/dyad#3498
    (
        "Ollama",
        400,
        r#"{"error":{"message":"prompt too long; exceeded max context length by 4 tokens","type":"invalid_request_error","param":null,"code":null}}"#,
        "prompt - - -",
    ),
    (
        "Ollama, older",
        500,
        r#"{"error":{"message":"the input length exceeds the context length","type":"api_error","param":null,"code":null}}"#,
        "prompt - - -",
    ),
    (
        "MLX",
        400,
        r#"{"error":{"message":"Prompt exceeds maximum context length","type":"invalid_request_error"}}"#,
        "prompt - - -",
    ),
    (
        "TGI",
        422,
        r#"{"error":"Input validation error: `inputs` must have less than 1024 tokens. Given: 1872","error_type":"validation"}"#,
        "prompt 1024 1872 -",
    ),
    // bytedance/UI-TARS-desktop#626
    (
        "TGI, with new tokens",
        422,
        r#"{"error":"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 2048. Given: 3474 `inputs` tokens and 60 `max_new_tokens`","error_type":"validation"}"#,
        "total 2048 3474 60",
    ),
    // triton-inference-server/tensorrtllm_backend#565
    (
        "TensorRT-LLM",
        400,
        r#"{"error":{"message":"Prompt length (9000) exceeds maximum input length (8192). Set log level to info and check TRTGptModel logs for how maximum input length is set","type":"BadRequestError"}}"#,
        "prompt 8192 9000 -",
    ),
    // NVIDIA/TensorRT-LLM#9277
    (
        "TensorRT-LLM, total",
        400,
        r#"{"object":"error","message":"The sum of prompt length (9000), query length (0) should not exceed max_num_tokens (8192)","type":"BadRequestError","param":null,"code":400}"#,
        "prompt 8192 9000 -",
    ),
    // google-gemini/gemini-cli#4692
    (
        "Google",
        400,
        r#"{"error":{"code":400,"message":"The input token count (1196265) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}"#,
        "prompt 1048576 1196265 -",
    ),
    // google-gemini/gemini-cli#12098
    (
        "Google, as a list",
        400,
        r#"[{"error":{"code":400,"message":"The input token count (134123) exceeds the maximum number of tokens allowed (131072).","errors":[{"message":"The input token count (134123) exceeds the maximum number of tokens allowed (131072).","domain":"global","reason":"badRequest"}],"status":"INVALID_ARGUMENT"}}]"#,
        "prompt 131072 134123 -",
    ),
    (
        "Google, without the size",
        400,
        r#"{"error":{"code":400,"message":"The input token count exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}"#,
        "prompt 1048576 - -",
    ),
    (
        "Google Vertex",
        400,
        r#"{"error":{"code":400,"message":"Unable to submit request because the input token count is 1055312 but model only supports up to 1048576. Reduce the input token count and try again.","status":"INVALID_ARGUMENT"}}"#,
        "prompt 1048576 1055312 -",
    ),
    (
        "Google, error in an error",
        500,
        r#"{"error":{"message":"{\n  \"error\": {\n    \"code\": 400,\n    \"message\": \"The input token count (3475108) exceeds the maximum number of tokens allowed (1048576).\",\n    \"status\": \"INVALID_ARGUMENT\"\n  }\n}\n","code":400,"status":"Bad Request"}}"#,
        "prompt 1048576 3475108 -",
    ),
    // aws-samples/assessment-generator#2, continuedev/continue#9592
    ("Bedrock", 400, r#"{"message":"Input is too long for requested model."}"#, "prompt - - -"),
    (
        "Bedrock, typed",
        400,
        r#"{"__type":"ValidationException","message":"Input is too long for requested model."}"#,
        "prompt - - -",
    ),
    (
        "Bedrock, Claude",
        400,
        r#"{"message":"The model returned the following errors: input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000, decrease input length or `max_tokens` and try again"}"#,
        "total 200000 190000 32000",
    ),
    (
        "Bedrock, Llama",
        400,
        r#"{"message":"This model's maximum context length is 8192 tokens. Please reduce the length of the prompt"}"#,
        "prompt 8192 - -",
    ),
    (
        "Copilot",
        400,
        r#"{"error":{"message":"prompt token count of 138898 exceeds the limit of 64000","code":"model_max_prompt_tokens_exceeded"}}"#,
        "prompt 64000 138898 -",
    ),
    (
        "Copilot, older",
        400,
        r#"{"error":{"message":"prompt token count of 93854 exceeds the limit of 90000","param":"","code":"","type":""}}"#,
        "prompt 90000 93854 -",
    ),
    (
        "OpenRouter",
        400,
        r#"{"error":{"message":"This endpoint's maximum context length is 65536 tokens. However, you requested about 92208 tokens (60833 of text input, 10042 of tool input, 21333 in the output). Please reduce the length of either one, or use the \"middle-out\" transform to compress your prompt automatically.","code":400,"metadata":{"provider_name":null}}}"#,
        "prompt 65536 70875 21333",
    ),
    (
        "OpenRouter, newer",
        400,
        r#"{"error":{"message":"This endpoint's maximum context length is 202752 tokens. However, you requested about 203889 tokens (183648 of text input, 4241 of tool input, 16000 in the output). Please reduce the length of either one, or use the context-compression plugin to compress your prompt automatically.","code":400}}"#,
        "total 202752 187889 16000",
    ),
    // refly-ai/refly#1177
    (
        "OpenRouter, text alone",
        400,
        r#"{"error":{"message":"This endpoint's maximum context length is 32768 tokens. However, you requested about 42832 tokens (42832 of text input). Please reduce the length of either one, or use the \"middle-out\" transform to compress your prompt automatically.","code":400}}"#,
        "prompt 32768 42832 -",
    ),
    (
        "OpenRouter, the provider's words",
        400,
        r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"prompt is too long: 201000 tokens > 200000 maximum\"}}","provider_name":"Anthropic"}}}"#,
        "prompt 200000 201000 -",
    ),
    (
        "a router of Claude Code",
        400,
        r#"{"error":{"message":"Error from provider: {\"error\":{\"message\":\"This endpoint's maximum context length is 65536 tokens. However, you requested about 92208 tokens (60833 of text input, 10042 of tool input, 21333 in the output).\",\"code\":400}}","type":"api_error","code":"provider_response_error"}}"#,
        "prompt 65536 70875 21333",
    ),
    // cline/cline#3120
    (
        "xAI",
        400,
        r#"{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is 131072 but the request contains 537812 tokens."}"#,
        "prompt 131072 537812 -",
    ),
    (
        "Groq",
        400,
        r#"{"error":{"message":"Please reduce the length of the messages or completion.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
        "prompt - - -",
    ),
    (
        "Cerebras",
        400,
        r#"{"message":"Please reduce the length of the messages or completion. Current length is 42328 while limit is 40000","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}"#,
        "prompt 40000 42328 -",
    ),
    (
        "Mistral",
        400,
        r#"{"object":"error","message":"Prompt contains 157500 tokens and 0 draft tokens, too large for model with 131072 maximum context length","type":"invalid_request_error","param":null,"code":"3051"}"#,
        "prompt 131072 157500 -",
    ),
    (
        "DeepSeek",
        400,
        r#"{"error":{"message":"This model's maximum context length is 131072 tokens. However, you requested 131134 tokens (122942 in the messages, 8192 in the completion). Please reduce the length of the messages or completion.","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}"#,
        "total 131072 122942 8192",
    ),
    // MoonshotAI/kimi-cli#2011
    (
        "Kimi",
        400,
        r#"{"error":{"message":"Invalid request: Your request exceeded model token limit: 262144 (requested: 269030)","type":"invalid_request_error"}}"#,
        "prompt 262144 269030 -",
    ),
    // agentscope-ai/QwenPaw#6255
    (
        "Qwen",
        400,
        r#"{"error":{"code":"invalid_parameter_error","message":"<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 983616]","param":null,"type":"invalid_request_error"},"request_id":"1"}"#,
        "prompt 983616 - -",
    ),
    // QwenLM/Qwen-Agent#615
    (
        "Qwen, DashScope",
        400,
        r#"{"code":"InvalidParameter","message":"Range of input length should be [1, 30720]","request_id":"1"}"#,
        "prompt 30720 - -",
    ),
    // zeroclaw-labs/zeroclaw#4124
    ("GLM", 400, r#"{"error":{"code":"1261","message":"Prompt exceeds max length"}}"#, "prompt - - -"),
    // MiniMax-AI/MiniMax-M2#119
    (
        "MiniMax",
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"invalid params, context window exceeds limit (2013)"}}"#,
        "prompt - - -",
    ),
    (
        "MiniMax, under 200",
        200,
        r#"{"id":"1","choices":null,"model":"m","usage":{"total_tokens":0},"base_resp":{"status_code":1039,"status_msg":"token limit"}}"#,
        "prompt - - -",
    ),
    (
        "Cohere",
        400,
        r#"{"message":"too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 6354. Try using a shorter prompt, or enable prompt truncating."}"#,
        "prompt 4081 6354 -",
    ),
    // ogx-ai/ogx#697
    (
        "Fireworks",
        400,
        r#"{"error":{"object":"error","type":"invalid_request_error","code":"invalid_request_error","message":"The prompt is too long: 138000, model maximum context length: 131071"}}"#,
        "prompt 131071 138000 -",
    ),
    (
        "Together",
        422,
        r#"{"id":"1","error":{"message":"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000 `inputs` tokens and 512 `max_new_tokens`","type":"invalid_request_error","param":null,"code":null}}"#,
        "total 8193 9000 512",
    ),
    // langgenius/dify#19394
    (
        "SiliconFlow",
        400,
        r#"{"code":20015,"message":"length of prompt_tokens (40000) must be less than max_seq_len (32768).","data":null}"#,
        "prompt 32768 40000 -",
    ),
    (
        "Cloudflare",
        413,
        r#"{"errors":[{"message":"AiError: The estimated number of input and maximum output tokens (24545) exceeded this model context window limit (24000).","code":8007}],"success":false,"result":{},"messages":[]}"#,
        "total 24000 - -",
    ),
    (
        "Replicate",
        422,
        r#"{"detail":"Your input is too long. Max input length is 4096 tokens, but you supplied 5441 tokens."}"#,
        "prompt 4096 5441 -",
    ),
    // agentscope-ai/QwenPaw#272
    (
        "Doubao",
        400,
        r#"{"error":{"code":"InvalidParameter","message":"Total tokens of image and text exceed max message tokens","param":"","type":"BadRequest"}}"#,
        "prompt - - -",
    ),
    (
        "nginx",
        413,
        "<html>\r\n<head><title>413 Request Entity Too Large</title></head>\r\n<body><center><h1>413 Request Entity Too Large</h1></center></body></html>",
        "body - - -",
    ),
    ("express", 413, "PayloadTooLargeError: request entity too large", "body - - -"),
    ("a 413 without a word", 413, "", "body - - -"),
    (
        "z.ai, as an error",
        400,
        r#"{"error":{"code":"400","message":"Unhandled stop reason: model_context_window_exceeded"}}"#,
        "prompt - - -",
    ),
    (
        "GitHub Models",
        413,
        r#"{"error":{"code":"tokens_limit_reached","message":"Request body too large for gpt-4o-mini model. Max size: 8000 tokens.","details":"Request body too large for gpt-4o-mini model. Max size: 8000 tokens."}}"#,
        "prompt 8000 - -",
    ),
    (
        "a proxy",
        400,
        r#"{"detail":"Request exceeds maximum context limit of 8192 tokens"}"#,
        "prompt 8192 - -",
    ),
    // langgenius/dify#32221
    (
        "Volcengine",
        400,
        r#"{"error":{"code":"InvalidParameter","message":"Input length 203743 exceeds the maximum length 202752. Request id: 1","param":"","type":"BadRequest"}}"#,
        "prompt 202752 203743 -",
    ),
    // ValueCell-ai/ClawX#658
    (
        "oMLX",
        400,
        r#"{"error":{"message":"Prompt too long: 41911 tokens exceeds max context window of 32768 tokens","type":"invalid_request_error"}}"#,
        "prompt 32768 41911 -",
    ),
    // By its name in the lists of several agents
    (
        "DS4",
        400,
        r#"{"error":{"message":"Prompt has 300,000 tokens, but the configured context size is 131,072 tokens","type":"invalid_request_error"}}"#,
        "prompt 131072 300000 -",
    ),
    // triton-inference-server/tensorrtllm_backend#141
    (
        "TensorRT-LLM in Triton",
        500,
        r#"{"error":"Cannot process new request: Prompt length (5056) exceeds maximum sequence length (2048)"}"#,
        "prompt 2048 5056 -",
    ),
    // ryanadoty/Amazon-Bedrock-Amazon-RDS-POC#9
    (
        "Bedrock, Titan",
        400,
        r#"{"message":"Malformed input request: expected maxLength: 42000, actual: 46735, please reformat your input and try again."}"#,
        "body - - -",
    ),
    // aaif-goose/goose#7504
    (
        "Bedrock, Claude alone",
        400,
        r#"{"message":"The model returned the following errors: prompt is too long: 227255 tokens > 200000 maximum"}"#,
        "prompt 200000 227255 -",
    ),
    // cloudflare/cloudflare-docs#29731
    (
        "Cloudflare, by vLLM",
        400,
        r#"{"errors":[{"message":"AiError: This model's maximum context length is 131072 tokens. However, you requested 16000 output tokens and your prompt contains at least 115073 input tokens, for a total of at least 131073 tokens. Please reduce the length of the input prompt or reduce max_tokens.","code":8007}],"success":false,"result":{},"messages":[]}"#,
        "total 131072 115073 16000",
    ),
    // anomalyco/models.dev#4422
    (
        "Cloudflare, by SGLang",
        400,
        r#"{"errors":[{"message":"AiError: Requested token count exceeds the model's maximum context length of 256000 tokens. You requested a total of 256878 tokens: 31216 tokens from the input messages and 225662 tokens for the completion.","code":8007}],"success":false,"result":{},"messages":[]}"#,
        "total 256000 31216 225662",
    ),
    (
        "Ollama's cloud",
        400,
        r#"{"error":"The prompt is too long: 208863, model maximum context length: 202752"}"#,
        "prompt 202752 208863 -",
    ),
    (
        "Ollama, an error in an error",
        400,
        r#"{"error":"{\"error\":{\"code\":400,\"message\":\"request (40000 tokens) exceeds the available context size (32768 tokens), try increasing it\",\"type\":\"exceed_context_size_error\",\"n_prompt_tokens\":40000,\"n_ctx\":32768}}"}"#,
        "prompt 32768 40000 -",
    ),
    (
        "Groq, more than a minute's tokens",
        413,
        r#"{"error":{"message":"Request too large for model `llama-3.3-70b-versatile` in organization `org_1` service tier `on_demand` on tokens per minute (TPM): Limit 6000, Requested 14810, please reduce your message size and try again. Visit the console for more information.","type":"tokens","code":"rate_limit_exceeded"}}"#,
        "total 6000 14810 -",
    ),
    (
        "OpenAI, more than a minute's tokens",
        429,
        r#"{"error":{"message":"Request too large for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000, Requested 342389. The input or output tokens must be reduced in order to run successfully.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}"#,
        "total 30000 342389 -",
    ),
];

const OTHERS: &[(&str, u16, &str)] = &[
    (
        "OpenAI, one that would do in the next minute",
        429,
        r#"{"error":{"message":"Request too large for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000, Requested 20000. Please try again in 8s.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}"#,
    ),
    (
        "Groq, a minute that is used up",
        413,
        r#"{"error":{"message":"Request too large for model `x` on tokens per minute (TPM): Limit 6000, Used 5000, Requested 14810, please try again in 8s.","type":"tokens","code":"rate_limit_exceeded"}}"#,
    ),
    (
        "OpenAI, rate",
        429,
        r#"{"error":{"message":"Rate limit reached for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000, Used 29000, Requested 5000. Please try again in 8s.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}"#,
    ),
    (
        "OpenAI, quota",
        429,
        r#"{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}"#,
    ),
    (
        "Anthropic, rate",
        429,
        r#"{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed the rate limit for your organization of 40,000 input tokens per minute. Please reduce the prompt length or the maximum tokens requested, or try again later."}}"#,
    ),
    (
        "Anthropic, overloaded",
        529,
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
    ),
    (
        "Anthropic, image",
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes"}}"#,
    ),
    (
        "Anthropic, many images",
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"messages.4.content.0.image.source.base64.data: At least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels"}}"#,
    ),
    (
        "Anthropic, pages",
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"A maximum of 100 PDF pages may be provided."}}"#,
    ),
    (
        "Anthropic, credits",
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."}}"#,
    ),
    (
        "Anthropic, pairing",
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"messages.2: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1. Each `tool_use` block must have a corresponding `tool_result` block in the next message."}}"#,
    ),
    ("Bedrock, throttled", 429, r#"{"message":"Too many tokens, please wait before trying again."}"#),
    (
        "Bedrock, throttled under 400",
        400,
        r#"{"__type":"ThrottlingException","message":"Too many tokens, please wait before trying again."}"#,
    ),
    (
        "Bedrock, tokens a day",
        429,
        r#"{"message":"Too many tokens per day, please wait before trying again."}"#,
    ),
    (
        "OpenRouter, credits",
        402,
        r#"{"error":{"message":"This request requires more credits, or fewer max_tokens. You requested up to 32000 tokens, but can only afford 1024.","code":402}}"#,
    ),
    (
        "OpenAI, description of a tool",
        400,
        r#"{"error":{"message":"Invalid 'tools[0].function.description': string too long. Expected a string with maximum length 1024, but got a string with length 1500 instead.","type":"invalid_request_error","param":"tools[0].function.description","code":"string_above_max_length"}}"#,
    ),
    (
        "OpenAI, number of tools",
        400,
        r#"{"error":{"message":"Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 140 instead.","type":"invalid_request_error","param":"tools","code":"array_above_max_length"}}"#,
    ),
    (
        "OpenAI, key",
        401,
        r#"{"error":{"message":"Incorrect API key provided: sk-1.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}"#,
    ),
    (
        "OpenAI, server",
        500,
        r#"{"error":{"message":"The server had an error while processing your request. Sorry about that!","type":"server_error","param":null,"code":null}}"#,
    ),
    (
        "FastAPI, with the client's words",
        422,
        r#"{"detail":[{"type":"missing","loc":["body","model"],"msg":"Field required","input":{"messages":[{"role":"user","content":"it says: prompt is too long: 5 tokens > 4 maximum"}]}}]}"#,
    ),
    (
        "an answer that talks about it",
        200,
        r#"{"id":"1","choices":[{"index":0,"message":{"role":"assistant","content":"The error was: prompt is too long: 213462 tokens > 200000 maximum"},"finish_reason":"stop"}]}"#,
    ),
    ("a page", 502, "<html><head><title>502 Bad Gateway</title></head><body>Bad Gateway</body></html>"),
    (
        "not found",
        404,
        r#"{"error":{"message":"The model `x` does not exist: maximum context length unknown","code":"model_not_found"}}"#,
    ),
];

const OUTPUTS: &[(&str, &str, Option<u64>)] = &[
    (
        "OpenAI",
        r#"{"error":{"message":"max_tokens is too large: 6000. This model supports at most 4096 completion tokens, whereas you provided 6000.","type":"invalid_request_error","param":"max_tokens","code":"invalid_value"}}"#,
        Some(4096),
    ),
    (
        "Anthropic",
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"max_tokens: 9000 > 8192, which is the maximum allowed number of output tokens for claude-3-5-sonnet-20241022"}}"#,
        Some(8192),
    ),
    (
        "DeepSeek",
        r#"{"error":{"message":"Invalid max_tokens value, the valid range of max_tokens is [1, 8192]","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}"#,
        Some(8192),
    ),
    (
        "Qwen",
        r#"{"error":{"code":"invalid_parameter_error","message":"<400> InternalError.Algo.InvalidParameter: Range of max_tokens should be [1, 65536]","param":null,"type":"invalid_request_error"}}"#,
        Some(65536),
    ),
    (
        "Groq",
        r#"{"error":{"message":"`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less than the `context_window` for this model","type":"invalid_request_error","param":"max_tokens"}}"#,
        Some(8192),
    ),
    // langgenius/dify#14376
    (
        "Volcengine",
        r#"{"error":{"code":"InvalidParameter","message":"The parameter `max_tokens` specified in the request are not valid: integer above maximum value, expected a value <= 4096, but got 8192 instead. Request id: 1","param":"max_tokens","type":"BadRequest"}}"#,
        Some(4096),
    ),
    // anomalyco/models.dev#4422
    (
        "Cloudflare",
        r#"{"errors":[{"message":"AiError: max_completion_tokens is too large: 262144. This model supports at most 256000 completion tokens.","code":8007}],"success":false}"#,
        Some(256_000),
    ),
    (
        "Google",
        r#"{"error":{"code":400,"message":"Unable to submit request because it has a maxOutputTokens value of 100000 but the supported range is from 1 (inclusive) to 65537 (exclusive). Update the value and try again.","status":"INVALID_ARGUMENT"}}"#,
        None,
    ),
];

fn shown(status: u16, body: &str, fill: PromptFill) -> Option<String> {
    let refusal = refusal(status, body.as_bytes(), fill)?;
    let cause = format!("{:?}", refusal.cause).to_lowercase();
    let number = |n: Option<u64>| n.map_or("-".to_owned(), |n| n.to_string());
    Some(format!("{cause} {} {} {}", number(refusal.limit), number(refusal.size), number(refusal.output)))
}

#[test]
fn known_refusals_are_recognised_with_their_numbers() {
    assert!(REFUSALS.len() >= 60);
    let mut wrong = Vec::new();
    for (name, status, body, expected) in REFUSALS {
        let found = shown(*status, body, PromptFill::UNKNOWN);
        if found.as_deref() != Some(expected) {
            wrong.push(format!("{name}: {expected} expected, {found:?} found"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_room_for_a_prompt_excludes_the_output() {
    let room = |name: &str| {
        let (_, status, body, _) = REFUSALS.iter().find(|(known, ..)| *known == name).unwrap();
        refusal(*status, body.as_bytes(), PromptFill::UNKNOWN).unwrap().room()
    };
    assert_eq!(room("Anthropic"), Some(200_000));
    assert_eq!(room("Anthropic, with the output"), Some(136_000));
    assert_eq!(room("OpenRouter"), Some(65_536 - 21_333));
    // The output alone fills the window, so the room is the whole limit.
    assert_eq!(room("vLLM, room for the output"), Some(8192));
    assert_eq!(room("OpenAI, more than a minute's tokens"), Some(30_000));
    assert_eq!(room("OpenAI, one string"), None);
    assert_eq!(room("Groq"), None);
}

#[test]
fn prompt_size_is_known_if_the_output_is_separate() {
    let size = |name: &str| {
        let (_, status, body, _) = REFUSALS.iter().find(|(known, ..)| *known == name).unwrap();
        refusal(*status, body.as_bytes(), PromptFill::UNKNOWN).unwrap().prompt_size()
    };
    assert_eq!(size("Anthropic"), Some(213_462));
    assert!(size("Anthropic, with the output").is_some());
    assert_eq!(size("OpenAI, more than a minute's tokens"), None);
}

#[test]
fn similar_errors_are_not_refusals() {
    assert!(OTHERS.len() >= 15);
    for (name, status, body) in OTHERS {
        assert_eq!(shown(*status, body, PromptFill::FULL), None, "{name}");
        assert_eq!(too_much_output(*status, body.as_bytes()), None, "{name}");
    }
}

#[test]
fn refused_output_is_distinguished() {
    for (name, body, limit) in OUTPUTS {
        assert_eq!(shown(400, body, PromptFill::FULL), None, "{name}");
        let found = too_much_output(400, body.as_bytes());
        assert_eq!(found.map(|found| found.limit), Some(*limit), "{name}");
    }
    for (name, status, body, _) in REFUSALS {
        assert_eq!(too_much_output(*status, body.as_bytes()), None, "{name}");
    }
}

#[test]
fn an_empty_400_refuses_only_long_requests() {
    for body in ["", " \n", "{}", "Bad Request"] {
        // A small window that is nearly full, and a long prompt in a large window, which the provider may have lowered.
        for fill in [PromptFill::new(3_000, 4_000), PromptFill::new(38_000, 128_000)] {
            assert_eq!(shown(400, body, fill).as_deref(), Some("unknown - - -"));
        }
        assert_eq!(shown(400, body, PromptFill::new(7_000, 128_000)), None);
    }
    assert_eq!(shown(500, "", PromptFill::FULL), None);
}
