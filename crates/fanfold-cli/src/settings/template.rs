//! The file that `config init` writes: every setting with its description, commented out.

use fanfold_core::ContentKind;

use super::declaration::Scope;
use super::options::{Options, SETTINGS};

const HEAD: &str = "\
# Settings of fanfold. Flags and FANFOLD_* variables take precedence over this file.
# `fanfold config show` prints the values in use and where each comes from.
";

/// The lists, whose values need examples of their own.
const LISTS: &str = include_str!("lists.toml");
/// The tables, which only the user's own file may have.
const TABLES: &str = include_str!("tables.toml");

/// A settings file with everything commented out that it may set.
pub(crate) fn template(is_user: bool) -> String {
    let schema = schemars::schema_for!(Options);
    let mut text = HEAD.to_owned();
    for setting in SETTINGS.iter().filter(|setting| is_user || setting.scope == Scope::Folding) {
        let description = schema.as_value()["properties"][setting.name]["description"].as_str();
        let description = description.unwrap_or_default().replace('\n', "\n## ");
        text.push_str(&format!("\n## {description}\n# {} = {}\n", setting.name, setting.example));
    }
    let kinds = ContentKind::ALL.map(ContentKind::name).join(", ");
    let tables = if is_user { format!("\n{TABLES}") } else { String::new() };
    format!("{text}{tables}\n{}", LISTS.replace("KINDS", &kinds))
}

#[cfg(test)]
mod tests {
    use fanfold_core::Policy;

    use super::*;
    use crate::settings::file::parse;
    use crate::settings::numbers::Share;

    fn uncommented(is_user: bool) -> String {
        let text = template(is_user);
        let lines = text.lines().filter_map(|line| line.strip_prefix("# "));
        lines
            .filter(|line| line.contains(" = ") || line.starts_with('['))
            .map(|line| format!("{line}\n"))
            .collect()
    }

    #[test]
    fn template_is_valid_when_uncommented() {
        let options = parse(&uncommented(true), "template").expect("every line is a setting");
        assert_eq!((options.tools.len(), options.models.len(), options.prices.len()), (1, 1, 1));
        let policy = Policy::named("fanfold").expect("the default policy");
        let marks = (options.low_mark, options.tail);
        assert_eq!(marks, (Some(Share(policy.low_mark)), Some(Share(policy.tail.share))));
        assert_eq!(parse(&template(true), "template").expect("comments only"), Options::default());
    }

    #[test]
    fn template_for_a_project_has_every_setting_that_it_may_have() {
        let names = |is_user: bool, allows: fn(&Scope) -> bool| -> Vec<&str> {
            let options = parse(&uncommented(is_user), "template").expect("every line is a setting");
            let scopes = options.scopes().into_iter();
            scopes.filter(|(_, scope)| allows(scope)).map(|(name, _)| name).collect()
        };
        assert_eq!(names(false, |_| true), names(true, |scope| *scope == Scope::Folding));
    }
}
