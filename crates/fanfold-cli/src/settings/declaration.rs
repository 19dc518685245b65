//! The macro behind the one declaration of each setting.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::ValueEnum;
use fanfold_core::Policy;

use super::numbers::{Share, Size};
use super::options::{Chain, Color, Options, UserText};

/// A setting with a single value.
pub(crate) struct Setting {
    pub(crate) name: &'static str,
    /// An example value in TOML, for `config init`.
    pub(super) example: &'static str,
    pub(crate) default: SettingDefault,
    pub(super) scope: Scope,
}

/// Which files may set a setting. A project's file may come from someone else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// Any file, because it only decides how conversations are folded.
    Folding,
    /// Only the user's own file, because it decides this.
    User(&'static str),
}

/// The value of a setting that is not set.
pub(crate) enum SettingDefault {
    Value(&'static str),
    /// Depends on something else; described in words.
    Rule(&'static str),
    Policy(fn(&Policy) -> String),
    Options(fn(&Options) -> Option<String>),
    None,
}

/// Declares every setting: the struct that a file is parsed into, the structs of the flags, the variables of the
/// environment, precedence, `config show` and `config init`.
///
/// A setting is one entry: its documentation (help text and schema), its name and type, the arguments of its clap
/// attribute in brackets (`skip` if it has no flag), an example for `config init`, the files that may set it, and its
/// default for `config show`.
macro_rules! settings {
    (
        $(#[$about:meta])*
        pub(crate) struct $Options:ident;
        $(
            $(#[$group_doc:meta])*
            flags $Group:ident {
                $( $(#[$doc:meta])* $name:ident: $type:ty [$($flag:tt)*] = $example:literal, $scope:expr, $default:expr; )*
            }
        )*
        tables { $( $(#[$table_attribute:meta])* $table:ident: $table_type:ty, $table_scope:expr; )* }
        lists { $( $(#[$list_attribute:meta])* $list:ident: $list_type:ty, $list_scope:expr; )* }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, Default, PartialEq, serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub(crate) struct $Options {
            $($(
                $(#[$doc])*
                #[serde(skip_serializing_if = "Option::is_none")]
                pub(crate) $name: Option<$type>,
            )*)*
            $( $(#[$table_attribute])* pub(crate) $table: $table_type, )*
            $( $(#[$list_attribute])* pub(crate) $list: $list_type, )*
        }

        $(
            $(#[$group_doc])*
            #[derive(Debug, Clone, Default, PartialEq, clap::Args)]
            pub(crate) struct $Group {
                $( $(#[$doc])* #[arg($($flag)*)] pub(crate) $name: Option<$type>, )*
            }

            impl $Group {
                /// Copies the flags into the options.
                pub(crate) fn set(&self, options: &mut $Options) {
                    $( options.$name.clone_from(&self.$name); )*
                }
            }
        )*

        /// Every setting with a single value.
        pub(crate) const SETTINGS: &[Setting] = &[
            $($( Setting {
                name: stringify!($name),
                example: $example,
                default: $default,
                scope: $scope,
            }, )*)*
        ];

        impl $Options {
            /// The fields of [`SETTINGS`], in the same order.
            pub(super) fn fields(&mut self) -> Vec<&mut dyn SettingField> {
                vec![ $($( &mut self.$name, )*)* ]
            }

            /// Takes each value that is not set yet. Lists are appended. Returns the names of what was taken.
            pub(super) fn merge(&mut self, other: $Options) -> Vec<&'static str> {
                let mut taken = Vec::new();
                $($(
                    if self.$name.is_none() && other.$name.is_some() {
                        self.$name = other.$name;
                        taken.push(stringify!($name));
                    }
                )*)*
                $(
                    if self.$table == Default::default() && other.$table != Default::default() {
                        self.$table = other.$table;
                        taken.push(stringify!($table));
                    }
                )*
                $(
                    if !other.$list.is_empty() {
                        taken.push(stringify!($list));
                    }
                    self.$list.extend(other.$list);
                )*
                taken
            }

            /// The names of the settings in use, and the files that may set each.
            pub(super) fn scopes(&self) -> Vec<(&'static str, Scope)> {
                let mut scopes = Vec::new();
                $($(
                    if self.$name.is_some() {
                        scopes.push((stringify!($name), $scope));
                    }
                )*)*
                $(
                    if self.$table != Default::default() {
                        scopes.push((stringify!($table), $table_scope));
                    }
                )*
                $(
                    if !self.$list.is_empty() {
                        scopes.push((stringify!($list), $list_scope));
                    }
                )*
                scopes
            }

            /// The labels of what lists and tables hold, by their names.
            pub(super) fn labels(&self) -> Vec<(&'static str, Vec<String>)> {
                vec![
                    $( (stringify!($list), self.$list.iter().map(|item| item.label()).collect()), )*
                    $( (stringify!($table), self.$table.labels()), )*
                ]
            }
        }
    };
}

pub(super) use settings;

/// A setting in [`Options`], whatever its type.
pub(super) trait SettingField {
    /// Sets it from the text of an environment variable.
    fn parse(&mut self, text: &str) -> Result<(), String>;
    /// The value as a person would write it.
    fn print(&self) -> Option<String>;
    /// Resolves a relative path against a directory.
    fn resolve(&mut self, directory: &Path);
}

impl<T: Value> SettingField for Option<T> {
    fn parse(&mut self, text: &str) -> Result<(), String> {
        *self = Some(T::parse(text)?);
        Ok(())
    }

    fn print(&self) -> Option<String> {
        self.as_ref().map(T::print)
    }

    fn resolve(&mut self, directory: &Path) {
        if let Some(value) = self {
            value.resolve(directory);
        }
    }
}

/// The type of a setting.
trait Value: Sized {
    fn parse(text: &str) -> Result<Self, String>;
    fn print(&self) -> String;
    fn resolve(&mut self, _directory: &Path) {}
}

macro_rules! plain_values {
    ($($type:ty),*) => {$(
        impl Value for $type {
            fn parse(text: &str) -> Result<Self, String> {
                <$type>::from_str(text).map_err(|error| error.to_string())
            }

            fn print(&self) -> String {
                self.to_string()
            }
        }
    )*};
}

plain_values!(String, bool, Size, Share, Chain);

impl Value for PathBuf {
    fn parse(text: &str) -> Result<Self, String> {
        Ok(PathBuf::from(text))
    }

    fn print(&self) -> String {
        self.display().to_string()
    }

    fn resolve(&mut self, directory: &Path) {
        *self = directory.join(&*self);
    }
}

macro_rules! named_values {
    ($($type:ty),*) => {$(
        impl Value for $type {
            fn parse(text: &str) -> Result<Self, String> {
                parse_named(text)
            }

            fn print(&self) -> String {
                value_name(self)
            }
        }
    )*};
}

named_values!(Color, UserText);

fn parse_named<T: ValueEnum>(text: &str) -> Result<T, String> {
    T::from_str(text, false).map_err(|_| {
        let names: Vec<String> = T::value_variants().iter().map(value_name).collect();
        format!("`{text}` is not one of {}", names.join(", "))
    })
}

fn value_name(value: &impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

impl fmt::Debug for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
