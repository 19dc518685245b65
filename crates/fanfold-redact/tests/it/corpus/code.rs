//! Settings that are source code: an assignment, an argument, a literal.

use super::item::{Item, Shown};
use super::kinds::Shape;
use super::rng::Rng;

pub(super) fn python(rng: &mut Rng, item: &Item) -> Shown {
    if item.kind.shape == Shape::Block {
        let written = item.raw();
        let text = format!("{} = \"\"\"{}\"\"\"\n", item.name.screaming(), written.value);
        return written.shown(text);
    }
    let is_single = rng.one_in(2);
    let written = if is_single { item.in_single() } else { item.in_double() };
    let value = if is_single { format!("'{}'", written.value) } else { format!("\"{}\"", written.value) };
    let name = item.name.snake();
    let text = match rng.below(5) {
        0 => format!("{} = {value}", item.name.screaming()),
        1 => format!("client = Client(host=\"api.acme.dev\", {name}={value}, timeout=30)"),
        2 => format!("    self.{name}: str = {value}  # FIXME: move to vault"),
        3 => format!("os.environ[\"{}\"] = {value}", item.name.screaming()),
        _ => format!("{} = os.getenv(\"{}\", {value})", name, item.name.screaming()),
    };
    written.shown(text)
}

pub(super) fn javascript(rng: &mut Rng, item: &Item) -> Shown {
    let quote = rng.pick(&["'", "\"", "`"]);
    let written = if quote == "'" { item.in_single() } else { item.in_double() };
    let value = format!("{quote}{}{quote}", written.value);
    let name = item.name.camel();
    let text = match rng.below(5) {
        0 => format!("const {name} = {value};"),
        1 => format!("const client = new Client({{ region: 'eu', {name}: {value} }});"),
        2 => format!("process.env.{} = {value}", item.name.screaming()),
        3 => format!("  {name}: process.env.{} || {value},", item.name.screaming()),
        _ => format!("export const config: Config = {{\n  \"{}\": {value},\n}};", item.name.kebab()),
    };
    written.shown(text)
}

pub(super) fn rust(rng: &mut Rng, item: &Item) -> Shown {
    let written = item.in_double();
    let value = format!("\"{}\"", written.value);
    let name = item.name.snake();
    let text = match rng.below(4) {
        0 => format!("const {}: &str = {value};", item.name.screaming()),
        1 => format!("    let {name} = {value}.to_string();"),
        2 => format!("    Config {{ {name}: {value}.into(), ..Config::default() }}"),
        _ => format!(
            "    let {name} = env::var(\"{}\").unwrap_or_else(|_| {value}.into());",
            item.name.screaming()
        ),
    };
    written.shown(text)
}

pub(super) fn go(rng: &mut Rng, item: &Item) -> Shown {
    let written = item.in_double();
    let value = format!("\"{}\"", written.value);
    let text = match rng.below(4) {
        0 => format!("const {} = {value}", item.name.camel()),
        1 => format!("\t{} := {value}", item.name.camel()),
        2 => format!("\tcfg := Config{{{}: {value}, Region: \"eu\"}}", item.name.pascal()),
        _ => format!("\tos.Setenv(\"{}\", {value})", item.name.screaming()),
    };
    written.shown(text)
}

pub(super) fn java(rng: &mut Rng, item: &Item) -> Shown {
    let written = item.in_double();
    let value = format!("\"{}\"", written.value);
    let text = match rng.below(4) {
        0 => format!("private static final String {} = {value};", item.name.screaming()),
        1 => format!("        String {} = {value};", item.name.camel()),
        2 => format!("        builder.{}({value}).build();", item.name.camel()),
        _ => format!("        config.set{}({value});", item.name.pascal()),
    };
    written.shown(text)
}

pub(super) fn php(rng: &mut Rng, item: &Item) -> Shown {
    let written = item.in_single();
    let value = format!("'{}'", written.value);
    let name = item.name.snake();
    let text = match rng.below(4) {
        0 => format!("${name} = {value};"),
        1 => format!("define('{}', {value});", item.name.screaming()),
        2 => format!("    '{name}' => env('{}', {value}),", item.name.screaming()),
        _ => format!("return ['host' => 'db.internal', '{name}' => {value}];"),
    };
    written.shown(text)
}

pub(super) fn sql(rng: &mut Rng, item: &Item) -> Shown {
    let written = item.in_doubled_single();
    let value = format!("'{}'", written.value);
    let text = match rng.below(6) {
        0 => format!("CREATE USER 'app'@'%' IDENTIFIED BY {value};"),
        1 => format!("ALTER USER app WITH PASSWORD {value};"),
        2 => format!("create role app login encrypted password {value} valid until 'infinity';"),
        3 => format!("SET PASSWORD FOR 'app'@'localhost' = PASSWORD({value});"),
        4 => format!("CREATE LOGIN app WITH PASSWORD = {value};"),
        _ => format!("ALTER USER 'root'@'localhost' IDENTIFIED WITH mysql_native_password BY {value};"),
    };
    written.shown(text)
}
