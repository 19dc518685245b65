//! Contexts in files: environment, JSON, YAML, TOML, INI, manifests, XML, login files.

use super::kinds::Shape;
use super::rng::CorpusRng;
use super::sample::{NamedSample, RenderedSample, escape_double};

pub(super) fn dotenv(rng: &mut CorpusRng, sample: &NamedSample) -> RenderedSample {
    let is_quoted = sample.generated.value.contains('\n') || rng.one_in(3);
    let escaped = if is_quoted { sample.in_double() } else { sample.shell_word() };
    let quote = if is_quoted { "\"" } else { "" };
    let line = format!("{}={quote}{}{quote}", sample.name.screaming(), escaped.value);
    let text = match rng.below(3) {
        0 => line,
        1 => format!("NODE_ENV=production\n{line}\nPORT=8080"),
        _ => format!("# do not commit\n{line}\n\nLOG_LEVEL=info\n"),
    };
    escaped.render(text)
}

pub(super) fn json_compact(rng: &mut CorpusRng, sample: &NamedSample) -> RenderedSample {
    let escaped = sample.in_double();
    let name = sample.name.any(rng);
    let text = match rng.below(3) {
        0 => format!(r#"{{"{name}":"{}"}}"#, escaped.value),
        1 => format!(r#"{{"host":"db.internal","{name}":"{}","port":5432}}"#, escaped.value),
        _ => format!(r#"{{"level":"info","msg":"config loaded","config":{{"{name}":"{}"}}}}"#, escaped.value),
    };
    escaped.render(text)
}

pub(super) fn json_pretty(rng: &mut CorpusRng, sample: &NamedSample) -> RenderedSample {
    let escaped = sample.in_double();
    let text = format!(
        "{{\n  \"env\": \"prod\",\n  \"{}\": \"{}\",\n  \"retries\": 3\n}}",
        sample.name.any(rng),
        escaped.value
    );
    escaped.render(text)
}

/// A tool result or request body: JSON inside of a JSON string.
pub(super) fn json_in_json(rng: &mut CorpusRng, sample: &NamedSample) -> RenderedSample {
    // A self-contained text has no name, so it becomes the content.
    let is_content = sample.kind.shape == Shape::Whole || rng.one_in(2);
    if is_content {
        let inner = sample.lines(rng);
        let secret = escape_double(&inner.secret);
        let text = format!(
            r#"{{"type":"tool_result","content":"$ cat app.conf\n{}\n"}}"#,
            escape_double(&inner.text)
        );
        return RenderedSample { text, secret };
    }
    let escaped = sample.in_double_twice();
    let name = sample.name.any(rng);
    let text = match rng.below(2) {
        0 => format!(r#"{{"body":"{{\"user\":\"app\",\"{name}\":\"{}\"}}","status":200}}"#, escaped.value),
        _ => format!(r#"{{"arguments":"{{\"{name}\": \"{}\"}}","name":"set_config"}}"#, escaped.value),
    };
    escaped.render(text)
}

pub(super) fn yaml(rng: &mut CorpusRng, sample: &NamedSample) -> RenderedSample {
    let escaped = sample.scalar(rng);
    let name = sample.name.any(rng);
    let text = match rng.below(3) {
        0 => format!("{name}: {}", escaped.value),
        1 => format!("database:\n  host: db.internal\n  {name}: {}\n  port: 5432", escaped.value),
        _ => format!("env:\n  - {name}: {}  # rotate in May", escaped.value),
    };
    escaped.render(text)
}

pub(super) fn yaml_block(_rng: &mut CorpusRng, sample: &NamedSample) -> RenderedSample {
    let escaped = sample.raw();
    let text = format!(
        "tls:\n  {}: |\n    {}\n  port: 443",
        sample.name.camel(),
        escaped.value.replace('\n', "\n    ")
    );
    escaped.render(text)
}

pub(super) fn toml(rng: &mut CorpusRng, sample: &NamedSample) -> RenderedSample {
    let escaped = sample.in_double();
    let text = match rng.below(3) {
        0 => format!("{} = \"{}\"", sample.name.snake(), escaped.value),
        1 => format!("[server]\nport = 80\n{} = \"{}\"", sample.name.kebab(), escaped.value),
        _ => format!("auth = {{ user = \"app\", {} = \"{}\" }}", sample.name.snake(), escaped.value),
    };
    escaped.render(text)
}

pub(super) fn ini(rng: &mut CorpusRng, sample: &NamedSample) -> RenderedSample {
    let escaped = sample.raw();
    let text = match rng.below(3) {
        0 => format!("[client]\nuser = app\n{} = {}", sample.name.snake(), escaped.value),
        1 => format!("{}={}", sample.name.dotted(), escaped.value),
        _ => format!("; production\n{}={}\nhost=db.internal", sample.name.camel(), escaped.value),
    };
    escaped.render(text)
}

pub(super) fn docker_compose(rng: &mut CorpusRng, sample: &NamedSample) -> RenderedSample {
    let head = "services:\n  db:\n    image: postgres:16\n    environment:\n";
    if rng.one_in(2) {
        let escaped = sample.raw();
        let text = format!(
            "{head}      - {}={}\n    ports: [\"5432:5432\"]",
            sample.name.screaming(),
            escaped.value
        );
        return escaped.render(text);
    }
    let escaped = sample.scalar(rng);
    let text =
        format!("{head}      POSTGRES_USER: app\n      {}: {}", sample.name.screaming(), escaped.value);
    escaped.render(text)
}

pub(super) fn dockerfile(rng: &mut CorpusRng, sample: &NamedSample) -> RenderedSample {
    let name = sample.name.screaming();
    if rng.one_in(4) {
        let escaped = sample.raw();
        let text = format!("ENV {name} {}", escaped.value);
        return escaped.render(text);
    }
    let escaped = sample.shell_word();
    let text = match rng.below(3) {
        0 => format!("FROM node:22\nENV {name}={}\nRUN npm ci", escaped.value),
        1 => format!("ENV NODE_ENV=production {name}={}", escaped.value),
        _ => format!("ARG {name}={}", escaped.value),
    };
    escaped.render(text)
}

/// Name and value on two lines, or the readable part of a Secret.
pub(super) fn k8s_manifest(rng: &mut CorpusRng, sample: &NamedSample) -> RenderedSample {
    let escaped = sample.scalar(rng);
    let text = match rng.below(2) {
        0 => format!(
            "        env:\n        - name: {}\n          value: {}",
            sample.name.screaming(),
            escaped.value
        ),
        _ => format!("kind: Secret\nstringData:\n  {}: {}", sample.name.kebab(), escaped.value),
    };
    escaped.render(text)
}

pub(super) fn terraform(rng: &mut CorpusRng, sample: &NamedSample) -> RenderedSample {
    let escaped = sample.in_double();
    let name = sample.name.snake();
    let text = match rng.below(3) {
        0 => format!(
            "resource \"aws_db_instance\" \"main\" {{\n  engine = \"postgres\"\n  {name} = \"{}\"\n}}",
            escaped.value
        ),
        1 => format!("variable \"{name}\" {{\n  type    = string\n  default = \"{}\"\n}}", escaped.value),
        _ => format!("{name}  = \"{}\"", escaped.value),
    };
    escaped.render(text)
}

pub(super) fn xml_element(rng: &mut CorpusRng, sample: &NamedSample) -> RenderedSample {
    let escaped = sample.in_xml();
    let name = if rng.one_in(2) { sample.name.camel() } else { sample.name.pascal() };
    let text = format!("<server>\n  <id>central</id>\n  <{name}>{}</{name}>\n</server>", escaped.value);
    escaped.render(text)
}

pub(super) fn xml_attribute(rng: &mut CorpusRng, sample: &NamedSample) -> RenderedSample {
    let escaped = sample.in_xml();
    let text = match rng.below(3) {
        0 => format!("<dataSource user=\"app\" {}=\"{}\" pool=\"8\"/>", sample.name.camel(), escaped.value),
        1 => format!("<add key=\"{}\" value=\"{}\" />", sample.name.pascal(), escaped.value),
        _ => format!("<property name=\"{}\" value=\"{}\"/>", sample.name.dotted(), escaped.value),
    };
    escaped.render(text)
}

pub(super) fn netrc(rng: &mut CorpusRng, sample: &NamedSample) -> RenderedSample {
    let escaped = sample.shell_word();
    let text = match rng.below(2) {
        0 => format!("machine api.acme.dev login deploy password {}", escaped.value),
        _ => format!("machine git.acme.dev\n  login deploy\n  password {}\n", escaped.value),
    };
    escaped.render(text)
}

pub(super) fn npmrc(rng: &mut CorpusRng, sample: &NamedSample) -> RenderedSample {
    let escaped = sample.raw();
    let text = match rng.below(3) {
        0 => format!("//npm.acme.dev/:_authToken={}", escaped.value),
        1 => {
            format!("@acme:registry=https://npm.acme.dev/\n//npm.acme.dev/:_authToken=\"{}\"", escaped.value)
        }
        _ => format!("_auth={}\nalways-auth=true", escaped.value),
    };
    escaped.render(text)
}

pub(super) fn pypirc(_rng: &mut CorpusRng, sample: &NamedSample) -> RenderedSample {
    let escaped = sample.raw();
    let text = format!(
        "[distutils]\nindex-servers = acme\n\n[acme]\nrepository = https://pypi.acme.dev/\nusername = __token__\npassword = {}",
        escaped.value
    );
    escaped.render(text)
}
