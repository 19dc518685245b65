//! The places where a coding agent meets secrets, and which shapes of secret fit them.

use super::item::{Item, Shown};
use super::kinds::Kind;
use super::kinds::Shape::{self, Address, Block, Password, Token, Unmarked, Whole};
use super::rng::Rng;
use super::{code, commands, files, output};

/// One place where a secret may stand.
pub(super) struct Setting {
    pub name: &'static str,
    shapes: &'static [Shape],
    /// Kinds that fit although their shape is not listed, by the start of their name.
    also: &'static [&'static str],
    pub show: fn(&mut Rng, &Item) -> Shown,
}

impl Setting {
    pub(super) fn takes(&self, kind: &Kind) -> bool {
        self.shapes.contains(&kind.shape) || self.also.iter().any(|start| kind.name.starts_with(start))
    }
}

const NAMED: &[Shape] = &[Token, Unmarked, Password, Address];
const NAMED_OR_BLOCK: &[Shape] = &[Token, Unmarked, Password, Address, Block];
/// Without the many tokens: where one would only repeat what a setting like it has shown.
const UNTOLD: &[Shape] = &[Unmarked, Password, Address];
const VALUES: &[Shape] = &[Token, Unmarked, Password];
const KEYS: &[Shape] = &[Token, Unmarked];
const ALL: &[Shape] = &[Token, Unmarked, Password, Address, Whole, Block];

/// All settings, in a fixed order.
#[rustfmt::skip]
pub(super) fn settings() -> Vec<Setting> {
    let setting = |name, shapes, show| Setting { name, shapes, also: &[], show };
    vec![
        // Files of settings.
        setting("dotenv", NAMED_OR_BLOCK, files::dotenv),
        setting("json-compact", NAMED_OR_BLOCK, files::json_compact),
        setting("json-pretty", NAMED_OR_BLOCK, files::json_pretty),
        setting("json-in-json", ALL, files::json_in_json),
        setting("yaml", NAMED, files::yaml),
        setting("yaml-block", &[Block], files::yaml_block),
        setting("toml", NAMED, files::toml),
        setting("ini", NAMED, files::ini),
        setting("docker-compose", NAMED, files::docker_compose),
        setting("dockerfile", NAMED, files::dockerfile),
        setting("k8s-manifest", NAMED, files::k8s_manifest),
        setting("terraform", NAMED, files::terraform),
        setting("xml-element", NAMED, files::xml_element),
        Setting { name: "xml-attribute", shapes: UNTOLD, also: &["azure", "jfrog", "nuget", "sonarqube"], show: files::xml_attribute },
        Setting { name: "netrc", shapes: &[Password], also: &["github", "gitlab", "heroku", "bitbucket", "random"], show: files::netrc },
        Setting { name: "npmrc", shapes: &[], also: &["npm", "github", "gitlab", "jfrog", "random"], show: files::npmrc },
        Setting { name: "pypirc", shapes: &[Password], also: &["pypi", "gitlab", "jfrog", "random"], show: files::pypirc },
        // Source code.
        setting("python", NAMED_OR_BLOCK, code::python),
        setting("javascript", NAMED, code::javascript),
        setting("rust", NAMED, code::rust),
        setting("go", NAMED, code::go),
        setting("java", NAMED, code::java),
        Setting { name: "php", shapes: UNTOLD, also: &["stripe", "sendgrid", "openai", "slack"], show: code::php },
        Setting { name: "sql", shapes: &[Password], also: &["random-alnum"], show: code::sql },
        // Commands and requests.
        setting("shell-export", NAMED, commands::shell_export),
        setting("inline-env", NAMED, commands::inline_env),
        setting("other-shell", UNTOLD, commands::other_shell),
        setting("flag-space", VALUES, commands::flag_space),
        setting("flag-equals", VALUES, commands::flag_equals),
        setting("stores-a-setting", VALUES, commands::stores_a_setting),
        setting("heredoc", &[Block], commands::heredoc),
        Setting { name: "mysql-flag", shapes: &[Password], also: &["random-alnum"], show: commands::mysql_flag },
        Setting { name: "login-flag", shapes: &[Password], also: &["random-alnum", "docker-hub", "github", "gitlab"], show: commands::login_flag },
        setting("curl-header", KEYS, commands::curl_header),
        Setting { name: "curl-user", shapes: &[Password, Unmarked], also: &["stripe", "mailgun", "github", "atlassian", "bitbucket", "circleci"], show: commands::curl_user },
        setting("http-dump", KEYS, commands::http_dump),
        setting("url-query", VALUES, commands::url_query),
        setting("form-body", &[Unmarked, Password], commands::form_body),
        // What programs print.
        setting("log-bare", NAMED, output::log_bare),
        setting("log-quoted", NAMED, output::log_quoted),
        setting("stack-trace", &[Token, Unmarked, Password, Address, Whole], output::stack_trace),
        setting("debug-print", NAMED, output::debug_print),
        setting("git-diff", ALL, output::git_diff),
        setting("numbered-lines", ALL, output::numbered_lines),
        setting("grep", &[Token, Unmarked, Password, Address, Whole], output::grep),
        setting("markdown-table", NAMED, output::markdown_table),
        setting("prose", &[Token, Unmarked, Password, Address, Whole], output::prose),
        setting("plain", &[Token, Address, Whole, Block], output::plain),
    ]
}
