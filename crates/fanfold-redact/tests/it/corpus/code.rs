//! Contexts in source code: assignments, arguments, literals.

use super::kinds::Shape;
use super::rng::CorpusRng;
use super::sample::{NamedSample, RenderedSample};

pub(super) fn python(rng: &mut CorpusRng, sample: &NamedSample) -> RenderedSample {
    if sample.kind.shape == Shape::Block {
        let escaped = sample.raw();
        let text = format!("{} = \"\"\"{}\"\"\"\n", sample.name.screaming(), escaped.value);
        return escaped.render(text);
    }
    let is_single = rng.one_in(2);
    let escaped = if is_single { sample.in_single() } else { sample.in_double() };
    let value = if is_single { format!("'{}'", escaped.value) } else { format!("\"{}\"", escaped.value) };
    let name = sample.name.snake();
    let text = match rng.below(5) {
        0 => format!("{} = {value}", sample.name.screaming()),
        1 => format!("client = Client(host=\"api.acme.dev\", {name}={value}, timeout=30)"),
        2 => format!("    self.{name}: str = {value}  # FIXME: move to vault"),
        3 => format!("os.environ[\"{}\"] = {value}", sample.name.screaming()),
        _ => format!("{} = os.getenv(\"{}\", {value})", name, sample.name.screaming()),
    };
    escaped.render(text)
}

pub(super) fn javascript(rng: &mut CorpusRng, sample: &NamedSample) -> RenderedSample {
    let quote = rng.pick(&["'", "\"", "`"]);
    let escaped = if quote == "'" { sample.in_single() } else { sample.in_double() };
    let value = format!("{quote}{}{quote}", escaped.value);
    let name = sample.name.camel();
    let text = match rng.below(5) {
        0 => format!("const {name} = {value};"),
        1 => format!("const client = new Client({{ region: 'eu', {name}: {value} }});"),
        2 => format!("process.env.{} = {value}", sample.name.screaming()),
        3 => format!("  {name}: process.env.{} || {value},", sample.name.screaming()),
        _ => format!("export const config: Config = {{\n  \"{}\": {value},\n}};", sample.name.kebab()),
    };
    escaped.render(text)
}

pub(super) fn rust(rng: &mut CorpusRng, sample: &NamedSample) -> RenderedSample {
    let escaped = sample.in_double();
    let value = format!("\"{}\"", escaped.value);
    let name = sample.name.snake();
    let text = match rng.below(4) {
        0 => format!("const {}: &str = {value};", sample.name.screaming()),
        1 => format!("    let {name} = {value}.to_string();"),
        2 => format!("    Config {{ {name}: {value}.into(), ..Config::default() }}"),
        _ => format!(
            "    let {name} = env::var(\"{}\").unwrap_or_else(|_| {value}.into());",
            sample.name.screaming()
        ),
    };
    escaped.render(text)
}

pub(super) fn go(rng: &mut CorpusRng, sample: &NamedSample) -> RenderedSample {
    let escaped = sample.in_double();
    let value = format!("\"{}\"", escaped.value);
    let text = match rng.below(4) {
        0 => format!("const {} = {value}", sample.name.camel()),
        1 => format!("\t{} := {value}", sample.name.camel()),
        2 => format!("\tcfg := Config{{{}: {value}, Region: \"eu\"}}", sample.name.pascal()),
        _ => format!("\tos.Setenv(\"{}\", {value})", sample.name.screaming()),
    };
    escaped.render(text)
}

pub(super) fn java(rng: &mut CorpusRng, sample: &NamedSample) -> RenderedSample {
    let escaped = sample.in_double();
    let value = format!("\"{}\"", escaped.value);
    let text = match rng.below(4) {
        0 => format!("private static final String {} = {value};", sample.name.screaming()),
        1 => format!("        String {} = {value};", sample.name.camel()),
        2 => format!("        builder.{}({value}).build();", sample.name.camel()),
        _ => format!("        config.set{}({value});", sample.name.pascal()),
    };
    escaped.render(text)
}

pub(super) fn php(rng: &mut CorpusRng, sample: &NamedSample) -> RenderedSample {
    let escaped = sample.in_single();
    let value = format!("'{}'", escaped.value);
    let name = sample.name.snake();
    let text = match rng.below(4) {
        0 => format!("${name} = {value};"),
        1 => format!("define('{}', {value});", sample.name.screaming()),
        2 => format!("    '{name}' => env('{}', {value}),", sample.name.screaming()),
        _ => format!("return ['host' => 'db.internal', '{name}' => {value}];"),
    };
    escaped.render(text)
}

pub(super) fn sql(rng: &mut CorpusRng, sample: &NamedSample) -> RenderedSample {
    let escaped = sample.in_doubled_single();
    let value = format!("'{}'", escaped.value);
    let text = match rng.below(6) {
        0 => format!("CREATE USER 'app'@'%' IDENTIFIED BY {value};"),
        1 => format!("ALTER USER app WITH PASSWORD {value};"),
        2 => format!("create role app login encrypted password {value} valid until 'infinity';"),
        3 => format!("SET PASSWORD FOR 'app'@'localhost' = PASSWORD({value});"),
        4 => format!("CREATE LOGIN app WITH PASSWORD = {value};"),
        _ => format!("ALTER USER 'root'@'localhost' IDENTIFIED WITH mysql_native_password BY {value};"),
    };
    escaped.render(text)
}
