//! The file that `config init` writes: every setting with its description, commented out.

use fanfold_core::ContentKind;

use super::options::{Options, SETTINGS};

const HEAD: &str = "\
# Settings of fanfold. Flags and FANFOLD_* variables take precedence over this file.
# `fanfold config show` prints the values in use and where each comes from.
";

/// The tables, whose values need examples of their own.
const TABLES: &str = include_str!("tables.toml");

/// A settings file with everything commented out.
pub(crate) fn template() -> String {
    let schema = schemars::schema_for!(Options);
    let mut text = HEAD.to_owned();
    for setting in SETTINGS {
        let description = schema.as_value()["properties"][setting.name]["description"].as_str();
        let description = description.unwrap_or_default().replace('\n', "\n## ");
        text.push_str(&format!("\n## {description}\n# {} = {}\n", setting.name, setting.example));
    }
    let kinds = ContentKind::ALL.map(ContentKind::name).join(", ");
    format!("{text}\n{}", TABLES.replace("KINDS", &kinds))
}

#[cfg(test)]
mod tests {
    use fanfold_core::Policy;

    use super::*;
    use crate::settings::file::parse;
    use crate::settings::numbers::Share;

    fn uncommented() -> String {
        let text = template();
        let lines = text.lines().filter_map(|line| line.strip_prefix("# "));
        lines
            .filter(|line| line.contains(" = ") || line.starts_with('['))
            .map(|line| format!("{line}\n"))
            .collect()
    }

    #[test]
    fn template_is_valid_when_uncommented() {
        let options = parse(&uncommented(), "template").expect("every line is a setting");
        assert_eq!((options.tools.len(), options.models.len(), options.prices.len()), (1, 1, 1));
        let policy = Policy::named("fanfold").expect("the default policy");
        let marks = (options.low_mark, options.tail);
        assert_eq!(marks, (Some(Share(policy.low_mark)), Some(Share(policy.tail.share))));
        assert_eq!(parse(&template(), "template").expect("comments only"), Options::default());
    }
}
