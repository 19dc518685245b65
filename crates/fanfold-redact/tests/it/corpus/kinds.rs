//! What a kind of secret is, and the list of all of them.

use super::names::{self, Name};
use super::rng::Rng;
use super::{addresses, keys, tokens, unmarked};

/// One kind of secret: how it looks, where it may stand, what it is called.
pub(super) struct Kind {
    pub name: &'static str,
    pub shape: Shape,
    /// Names that may stand beside it, as words. Empty: made from the provider's name.
    names: &'static [&'static str],
    make: Make,
}

/// What a secret needs around it. Decides the settings that it fits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Shape {
    /// Known by its own format, with or without a name beside it.
    Token,
    /// Random characters without a format: only the name beside it tells.
    Unmarked,
    /// Made by a person or a password manager: only the name beside it tells.
    Password,
    /// A URL or a connection string; the secret is a part of it.
    Address,
    /// A text of its own that tells by itself, such as a header.
    Whole,
    /// Many lines, such as a private key.
    Block,
}

/// A secret with what surrounds it.
pub(super) struct Made {
    /// What is put into a setting.
    pub value: String,
    /// The part of it that must not survive.
    pub secret: String,
}

enum Make {
    Filled(&'static [&'static str]),
    By(fn(&mut Rng) -> Made),
}

impl Made {
    /// A value that is secret from its first to its last character.
    pub(super) fn whole(value: String) -> Made {
        Made { secret: value.clone(), value }
    }
}

impl Kind {
    /// A token with a format: one of the templates, filled.
    pub(super) const fn token(name: &'static str, templates: &'static [&'static str]) -> Kind {
        Kind { name, shape: Shape::Token, names: &[], make: Make::Filled(templates) }
    }

    /// A token with a format that a template cannot say.
    pub(super) const fn token_by(name: &'static str, make: fn(&mut Rng) -> Made) -> Kind {
        Kind { name, shape: Shape::Token, names: &[], make: Make::By(make) }
    }

    /// Random characters that need one of these names beside them.
    pub(super) const fn unmarked(
        name: &'static str,
        names: &'static [&'static str],
        templates: &'static [&'static str],
    ) -> Kind {
        Kind { name, shape: Shape::Unmarked, names, make: Make::Filled(templates) }
    }

    pub(super) const fn password(name: &'static str, make: fn(&mut Rng) -> Made) -> Kind {
        Kind { name, shape: Shape::Password, names: names::PASSWORD, make: Make::By(make) }
    }

    pub(super) const fn address(
        name: &'static str,
        names: &'static [&'static str],
        make: fn(&mut Rng) -> Made,
    ) -> Kind {
        Kind { name, shape: Shape::Address, names, make: Make::By(make) }
    }

    pub(super) const fn whole(name: &'static str, make: fn(&mut Rng) -> Made) -> Kind {
        Kind { name, shape: Shape::Whole, names: &[], make: Make::By(make) }
    }

    pub(super) const fn block(name: &'static str, make: fn(&mut Rng) -> Made) -> Kind {
        Kind {
            name,
            shape: Shape::Block,
            names: &["private key", "ssh key", "tls key", "signing key"],
            make: Make::By(make),
        }
    }

    pub(super) fn make(&self, rng: &mut Rng) -> Made {
        match self.make {
            Make::Filled(templates) => {
                let template = rng.pick(templates);
                Made::whole(rng.fill(template))
            }
            Make::By(make) => make(rng),
        }
    }

    /// A name to stand beside the secret.
    pub(super) fn name_beside(&self, rng: &mut Rng) -> Name {
        if !self.names.is_empty() {
            return Name(rng.pick(self.names).to_string());
        }
        let is_told_by_format_alone = rng.one_in(5);
        if is_told_by_format_alone {
            return Name(rng.pick(names::NEUTRAL).to_string());
        }
        let provider = self.name.split('-').next().expect("a split has a first part");
        Name(format!("{provider} {}", rng.pick(names::AFTER_PROVIDER)))
    }
}

/// All kinds, in a fixed order.
pub(super) fn kinds() -> Vec<Kind> {
    let mut all = tokens::kinds();
    all.extend(unmarked::kinds());
    all.extend(addresses::kinds());
    all.extend(keys::kinds());
    all
}
