//! The kinds of secrets, and how samples of them are generated.

use super::names::{self, Name};
use super::rng::CorpusRng;
use super::{addresses, keys, opaque, tokens};

/// A kind of secret: its shape, its usual names and its generator.
pub(super) struct SampleKind {
    pub name: &'static str,
    pub shape: Shape,
    /// Usual names, as words. If empty, a name is derived from the provider's name.
    names: &'static [&'static str],
    generate: Generator,
}

/// How a secret can be recognised. It decides the suitable contexts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Shape {
    /// Has a known format, so it is recognised with any name.
    Token,
    /// Random characters without a format, recognised by the name.
    Opaque,
    /// Chosen by a person or a password manager, recognised by the name.
    Password,
    /// A URL or a connection string that contains the secret.
    Address,
    /// A self-contained text without a name, such as a header.
    Whole,
    /// Several lines, such as a private key.
    Block,
}

/// A generated secret and the value that contains it.
pub(super) struct Sample {
    /// The value that is placed in a context.
    pub value: String,
    /// The part that must not remain.
    pub secret: String,
}

enum Generator {
    Templates(&'static [&'static str]),
    Function(fn(&mut CorpusRng) -> Sample),
}

impl Sample {
    /// A value that is a secret as a whole.
    pub(super) fn whole(value: String) -> Sample {
        Sample { secret: value.clone(), value }
    }
}

impl SampleKind {
    /// A token whose format is one of the templates.
    pub(super) const fn token(name: &'static str, templates: &'static [&'static str]) -> SampleKind {
        SampleKind { name, shape: Shape::Token, names: &[], generate: Generator::Templates(templates) }
    }

    /// A token whose format needs a function.
    pub(super) const fn token_from(name: &'static str, generate: fn(&mut CorpusRng) -> Sample) -> SampleKind {
        SampleKind { name, shape: Shape::Token, names: &[], generate: Generator::Function(generate) }
    }

    /// Random characters with one of these names.
    pub(super) const fn opaque(
        name: &'static str,
        names: &'static [&'static str],
        templates: &'static [&'static str],
    ) -> SampleKind {
        SampleKind { name, shape: Shape::Opaque, names, generate: Generator::Templates(templates) }
    }

    pub(super) const fn password(name: &'static str, generate: fn(&mut CorpusRng) -> Sample) -> SampleKind {
        SampleKind {
            name,
            shape: Shape::Password,
            names: names::PASSWORD,
            generate: Generator::Function(generate),
        }
    }

    pub(super) const fn address(
        name: &'static str,
        names: &'static [&'static str],
        generate: fn(&mut CorpusRng) -> Sample,
    ) -> SampleKind {
        SampleKind { name, shape: Shape::Address, names, generate: Generator::Function(generate) }
    }

    pub(super) const fn whole(name: &'static str, generate: fn(&mut CorpusRng) -> Sample) -> SampleKind {
        SampleKind { name, shape: Shape::Whole, names: &[], generate: Generator::Function(generate) }
    }

    pub(super) const fn block(name: &'static str, generate: fn(&mut CorpusRng) -> Sample) -> SampleKind {
        SampleKind {
            name,
            shape: Shape::Block,
            names: &["private key", "ssh key", "tls key", "signing key"],
            generate: Generator::Function(generate),
        }
    }

    pub(super) fn generate(&self, rng: &mut CorpusRng) -> Sample {
        match self.generate {
            Generator::Templates(templates) => {
                let template = rng.pick(templates);
                Sample::whole(rng.fill(template))
            }
            Generator::Function(generate) => generate(rng),
        }
    }

    /// A random name for the secret.
    pub(super) fn random_name(&self, rng: &mut CorpusRng) -> Name {
        if !self.names.is_empty() {
            return Name(rng.pick(self.names).to_string());
        }
        let has_neutral_name = rng.one_in(5);
        if has_neutral_name {
            return Name(rng.pick(names::NEUTRAL).to_string());
        }
        let provider = self.name.split('-').next().expect("a split has a first part");
        Name(format!("{provider} {}", rng.pick(names::AFTER_PROVIDER)))
    }
}

/// All kinds, in a fixed order.
pub(super) fn kinds() -> Vec<SampleKind> {
    let mut all = tokens::kinds();
    all.extend(opaque::kinds());
    all.extend(addresses::kinds());
    all.extend(keys::kinds());
    all
}
