//! The contexts of secrets, and the shapes that are suitable for each.

use super::kinds::SampleKind;
use super::kinds::Shape::{self, Address, Block, Opaque, Password, Token, Whole};
use super::rng::CorpusRng;
use super::sample::{NamedSample, RenderedSample};
use super::{code, commands, files, output};

/// The surroundings of a secret: a file, a command, source code or output.
pub(super) struct SecretContext {
    pub name: &'static str,
    shapes: &'static [Shape],
    /// Prefixes of kind names that are suitable as well, whatever their shape.
    extra_kinds: &'static [&'static str],
    pub render: fn(&mut CorpusRng, &NamedSample) -> RenderedSample,
}

impl SecretContext {
    pub(super) fn accepts(&self, kind: &SampleKind) -> bool {
        self.shapes.contains(&kind.shape) || self.extra_kinds.iter().any(|start| kind.name.starts_with(start))
    }
}

const NAMED: &[Shape] = &[Token, Opaque, Password, Address];
const NAMED_OR_BLOCK: &[Shape] = &[Token, Opaque, Password, Address, Block];
/// Without the many tokens, for contexts that are similar to another one.
const WITHOUT_TOKENS: &[Shape] = &[Opaque, Password, Address];
const VALUES: &[Shape] = &[Token, Opaque, Password];
const KEYS: &[Shape] = &[Token, Opaque];
const ALL: &[Shape] = &[Token, Opaque, Password, Address, Whole, Block];

/// All contexts, in a fixed order.
#[rustfmt::skip]
pub(super) fn contexts() -> Vec<SecretContext> {
    let context = |name, shapes, render| SecretContext { name, shapes, extra_kinds: &[], render };
    vec![
        // Files.
        context("dotenv", NAMED_OR_BLOCK, files::dotenv),
        context("json-compact", NAMED_OR_BLOCK, files::json_compact),
        context("json-pretty", NAMED_OR_BLOCK, files::json_pretty),
        context("json-in-json", ALL, files::json_in_json),
        context("yaml", NAMED, files::yaml),
        context("yaml-block", &[Block], files::yaml_block),
        context("toml", NAMED, files::toml),
        context("ini", NAMED, files::ini),
        context("docker-compose", NAMED, files::docker_compose),
        context("dockerfile", NAMED, files::dockerfile),
        context("k8s-manifest", NAMED, files::k8s_manifest),
        context("terraform", NAMED, files::terraform),
        context("xml-element", NAMED, files::xml_element),
        SecretContext { name: "xml-attribute", shapes: WITHOUT_TOKENS, extra_kinds: &["azure", "jfrog", "nuget", "sonarqube"], render: files::xml_attribute },
        SecretContext { name: "netrc", shapes: &[Password], extra_kinds: &["github", "gitlab", "heroku", "bitbucket", "random"], render: files::netrc },
        SecretContext { name: "npmrc", shapes: &[], extra_kinds: &["npm", "github", "gitlab", "jfrog", "random"], render: files::npmrc },
        SecretContext { name: "pypirc", shapes: &[Password], extra_kinds: &["pypi", "gitlab", "jfrog", "random"], render: files::pypirc },
        // Source code.
        context("python", NAMED_OR_BLOCK, code::python),
        context("javascript", NAMED, code::javascript),
        context("rust", NAMED, code::rust),
        context("go", NAMED, code::go),
        context("java", NAMED, code::java),
        SecretContext { name: "php", shapes: WITHOUT_TOKENS, extra_kinds: &["stripe", "sendgrid", "openai", "slack"], render: code::php },
        SecretContext { name: "sql", shapes: &[Password], extra_kinds: &["random-alnum"], render: code::sql },
        // Commands and requests.
        context("shell-export", NAMED, commands::shell_export),
        context("inline-env", NAMED, commands::inline_env),
        context("other-shell", WITHOUT_TOKENS, commands::other_shell),
        context("flag-space", VALUES, commands::flag_space),
        context("flag-equals", VALUES, commands::flag_equals),
        context("stores-a-setting", VALUES, commands::store_setting),
        context("heredoc", &[Block], commands::heredoc),
        SecretContext { name: "mysql-flag", shapes: &[Password], extra_kinds: &["random-alnum"], render: commands::mysql_flag },
        SecretContext { name: "login-flag", shapes: &[Password], extra_kinds: &["random-alnum", "docker-hub", "github", "gitlab"], render: commands::login_flag },
        context("curl-header", KEYS, commands::curl_header),
        SecretContext { name: "curl-user", shapes: &[Password, Opaque], extra_kinds: &["stripe", "mailgun", "github", "atlassian", "bitbucket", "circleci"], render: commands::curl_user },
        context("http-dump", KEYS, commands::http_dump),
        context("url-query", VALUES, commands::url_query),
        context("form-body", &[Opaque, Password], commands::form_body),
        // Output of programs.
        context("log-bare", NAMED, output::log_bare),
        context("log-quoted", NAMED, output::log_quoted),
        context("stack-trace", &[Token, Opaque, Password, Address, Whole], output::stack_trace),
        context("debug-print", NAMED, output::debug_print),
        context("git-diff", ALL, output::git_diff),
        context("numbered-lines", ALL, output::numbered_lines),
        context("grep", &[Token, Opaque, Password, Address, Whole], output::grep),
        context("markdown-table", NAMED, output::markdown_table),
        context("prose", &[Token, Opaque, Password, Address, Whole], output::prose),
        context("plain", &[Token, Address, Whole, Block], output::plain),
    ]
}
