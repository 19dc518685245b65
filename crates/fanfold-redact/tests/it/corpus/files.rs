//! Settings that are files: environment, JSON, YAML, TOML, INI, manifests, XML, login files.

use super::item::{Item, Shown, double};
use super::kinds::Shape;
use super::rng::Rng;

pub(super) fn dotenv(rng: &mut Rng, item: &Item) -> Shown {
    let is_quoted = item.made.value.contains('\n') || rng.one_in(3);
    let written = if is_quoted { item.in_double() } else { item.shell_word() };
    let quote = if is_quoted { "\"" } else { "" };
    let line = format!("{}={quote}{}{quote}", item.name.screaming(), written.value);
    let text = match rng.below(3) {
        0 => line,
        1 => format!("NODE_ENV=production\n{line}\nPORT=8080"),
        _ => format!("# do not commit\n{line}\n\nLOG_LEVEL=info\n"),
    };
    written.shown(text)
}

pub(super) fn json_compact(rng: &mut Rng, item: &Item) -> Shown {
    let written = item.in_double();
    let name = item.name.any(rng);
    let text = match rng.below(3) {
        0 => format!(r#"{{"{name}":"{}"}}"#, written.value),
        1 => format!(r#"{{"host":"db.internal","{name}":"{}","port":5432}}"#, written.value),
        _ => format!(r#"{{"level":"info","msg":"config loaded","config":{{"{name}":"{}"}}}}"#, written.value),
    };
    written.shown(text)
}

pub(super) fn json_pretty(rng: &mut Rng, item: &Item) -> Shown {
    let written = item.in_double();
    let text = format!(
        "{{\n  \"env\": \"prod\",\n  \"{}\": \"{}\",\n  \"retries\": 3\n}}",
        item.name.any(rng),
        written.value
    );
    written.shown(text)
}

/// A tool's result or a request's body: JSON inside a JSON string.
pub(super) fn json_in_json(rng: &mut Rng, item: &Item) -> Shown {
    // A text that tells by itself would make no sense behind a name.
    let is_content = item.kind.shape == Shape::Whole || rng.one_in(2);
    if is_content {
        let inner = item.lines(rng);
        let secret = double(&inner.secret);
        let text =
            format!(r#"{{"type":"tool_result","content":"$ cat app.conf\n{}\n"}}"#, double(&inner.text));
        return Shown { text, secret };
    }
    let written = item.in_double_twice();
    let name = item.name.any(rng);
    let text = match rng.below(2) {
        0 => format!(r#"{{"body":"{{\"user\":\"app\",\"{name}\":\"{}\"}}","status":200}}"#, written.value),
        _ => format!(r#"{{"arguments":"{{\"{name}\": \"{}\"}}","name":"set_config"}}"#, written.value),
    };
    written.shown(text)
}

pub(super) fn yaml(rng: &mut Rng, item: &Item) -> Shown {
    let written = item.scalar(rng);
    let name = item.name.any(rng);
    let text = match rng.below(3) {
        0 => format!("{name}: {}", written.value),
        1 => format!("database:\n  host: db.internal\n  {name}: {}\n  port: 5432", written.value),
        _ => format!("env:\n  - {name}: {}  # rotate in May", written.value),
    };
    written.shown(text)
}

pub(super) fn yaml_block(_rng: &mut Rng, item: &Item) -> Shown {
    let written = item.raw();
    let text = format!(
        "tls:\n  {}: |\n    {}\n  port: 443",
        item.name.camel(),
        written.value.replace('\n', "\n    ")
    );
    written.shown(text)
}

pub(super) fn toml(rng: &mut Rng, item: &Item) -> Shown {
    let written = item.in_double();
    let text = match rng.below(3) {
        0 => format!("{} = \"{}\"", item.name.snake(), written.value),
        1 => format!("[server]\nport = 80\n{} = \"{}\"", item.name.kebab(), written.value),
        _ => format!("auth = {{ user = \"app\", {} = \"{}\" }}", item.name.snake(), written.value),
    };
    written.shown(text)
}

pub(super) fn ini(rng: &mut Rng, item: &Item) -> Shown {
    let written = item.raw();
    let text = match rng.below(3) {
        0 => format!("[client]\nuser = app\n{} = {}", item.name.snake(), written.value),
        1 => format!("{}={}", item.name.dotted(), written.value),
        _ => format!("; production\n{}={}\nhost=db.internal", item.name.camel(), written.value),
    };
    written.shown(text)
}

pub(super) fn docker_compose(rng: &mut Rng, item: &Item) -> Shown {
    let head = "services:\n  db:\n    image: postgres:16\n    environment:\n";
    if rng.one_in(2) {
        let written = item.raw();
        let text =
            format!("{head}      - {}={}\n    ports: [\"5432:5432\"]", item.name.screaming(), written.value);
        return written.shown(text);
    }
    let written = item.scalar(rng);
    let text = format!("{head}      POSTGRES_USER: app\n      {}: {}", item.name.screaming(), written.value);
    written.shown(text)
}

pub(super) fn dockerfile(rng: &mut Rng, item: &Item) -> Shown {
    let name = item.name.screaming();
    if rng.one_in(4) {
        let written = item.raw();
        let text = format!("ENV {name} {}", written.value);
        return written.shown(text);
    }
    let written = item.shell_word();
    let text = match rng.below(3) {
        0 => format!("FROM node:22\nENV {name}={}\nRUN npm ci", written.value),
        1 => format!("ENV NODE_ENV=production {name}={}", written.value),
        _ => format!("ARG {name}={}", written.value),
    };
    written.shown(text)
}

/// The name and the value on two lines, or the readable part of a Secret.
pub(super) fn k8s_manifest(rng: &mut Rng, item: &Item) -> Shown {
    let written = item.scalar(rng);
    let text = match rng.below(2) {
        0 => format!(
            "        env:\n        - name: {}\n          value: {}",
            item.name.screaming(),
            written.value
        ),
        _ => format!("kind: Secret\nstringData:\n  {}: {}", item.name.kebab(), written.value),
    };
    written.shown(text)
}

pub(super) fn terraform(rng: &mut Rng, item: &Item) -> Shown {
    let written = item.in_double();
    let name = item.name.snake();
    let text = match rng.below(3) {
        0 => format!(
            "resource \"aws_db_instance\" \"main\" {{\n  engine = \"postgres\"\n  {name} = \"{}\"\n}}",
            written.value
        ),
        1 => format!("variable \"{name}\" {{\n  type    = string\n  default = \"{}\"\n}}", written.value),
        _ => format!("{name}  = \"{}\"", written.value),
    };
    written.shown(text)
}

pub(super) fn xml_element(rng: &mut Rng, item: &Item) -> Shown {
    let written = item.in_xml();
    let name = if rng.one_in(2) { item.name.camel() } else { item.name.pascal() };
    let text = format!("<server>\n  <id>central</id>\n  <{name}>{}</{name}>\n</server>", written.value);
    written.shown(text)
}

pub(super) fn xml_attribute(rng: &mut Rng, item: &Item) -> Shown {
    let written = item.in_xml();
    let text = match rng.below(3) {
        0 => format!("<dataSource user=\"app\" {}=\"{}\" pool=\"8\"/>", item.name.camel(), written.value),
        1 => format!("<add key=\"{}\" value=\"{}\" />", item.name.pascal(), written.value),
        _ => format!("<property name=\"{}\" value=\"{}\"/>", item.name.dotted(), written.value),
    };
    written.shown(text)
}

pub(super) fn netrc(rng: &mut Rng, item: &Item) -> Shown {
    let written = item.shell_word();
    let text = match rng.below(2) {
        0 => format!("machine api.acme.dev login deploy password {}", written.value),
        _ => format!("machine git.acme.dev\n  login deploy\n  password {}\n", written.value),
    };
    written.shown(text)
}

pub(super) fn npmrc(rng: &mut Rng, item: &Item) -> Shown {
    let written = item.raw();
    let text = match rng.below(3) {
        0 => format!("//npm.acme.dev/:_authToken={}", written.value),
        1 => {
            format!("@acme:registry=https://npm.acme.dev/\n//npm.acme.dev/:_authToken=\"{}\"", written.value)
        }
        _ => format!("_auth={}\nalways-auth=true", written.value),
    };
    written.shown(text)
}

pub(super) fn pypirc(_rng: &mut Rng, item: &Item) -> Shown {
    let written = item.raw();
    let text = format!(
        "[distutils]\nindex-servers = acme\n\n[acme]\nrepository = https://pypi.acme.dev/\nusername = __token__\npassword = {}",
        written.value
    );
    written.shown(text)
}
