//! A corpus of generated secrets in typical contexts of coding agents.
//!
//! It is based on the formats of providers and not on the rules of the redactor, so that a missing rule shows. All
//! secrets are generated at run time from a seed.
//!
//! ```text
//! kind     github-classic   a made-up token with a valid checksum
//! context  dotenv           GITHUB_TOKEN=...
//! case     a text, and the secret that must not remain in the output
//! ```

mod rng; //       random characters from a seed
mod names; //     names of secrets
mod kinds; //     kinds of secrets
mod tokens; //    kinds with a format
mod opaque; //    kinds that are recognised by their name; passwords
mod addresses; // URLs, connection strings, headers, cookies
mod keys; //      private keys
mod sample; //    a generated secret, escaped for a context
mod contexts; //  all contexts
mod files; //     contexts in files
mod code; //      contexts in source code
mod commands; //  contexts in commands and requests
mod output; //    contexts in output of programs
mod benign; //    texts that must not change

pub(crate) use benign::benign;

use contexts::{SecretContext, contexts};
use kinds::{SampleKind, kinds};
use rng::CorpusRng;
use sample::NamedSample;

/// A text with one secret to be redacted.
///
/// Some kinds, such as `k8s-data`, contain other sensitive parts; only this one is measured.
pub(crate) struct CorpusCase {
    /// The input of the redactor.
    pub(crate) text: String,
    /// The secret as it occurs in the text, which may be escaped.
    pub(crate) secret: String,
    /// The kind of the secret.
    pub(crate) kind: &'static str,
    /// The context of the secret.
    pub(crate) context: &'static str,
}

/// The first `n` cases of a seed, over all combinations of a kind and a suitable context.
///
/// 5,100 cases cover all combinations. A case depends only on its seed and number.
pub(crate) fn cases(seed: u64, n: usize) -> Vec<CorpusCase> {
    let (kinds, contexts) = (kinds(), contexts());
    let combinations = combinations(&kinds, &contexts);
    // A prime step that does not divide the number of combinations visits all of them in a mixed order.
    let step = [1009, 1013, 1019].into_iter().find(|step| !combinations.len().is_multiple_of(*step));
    let step = step.expect("no number of this size is a multiple of all three");
    (0..n).map(|i| case(seed, i, combinations[i * step % combinations.len()])).collect()
}

/// Length of the longest part of the secret in the output, in characters.
///
/// Up to 4 is acceptable, the length of the secret is a full leak, values in between are a partial leak.
pub(crate) fn longest_leak(case: &CorpusCase, output: &str) -> usize {
    let secret: Vec<char> = case.secret.chars().collect();
    let mut longest = 0;
    for start in 0..secret.len() {
        // Only look for parts longer than the longest one found.
        while start + longest < secret.len() {
            let piece: String = secret[start..=start + longest].iter().collect();
            if !output.contains(&piece) {
                break;
            }
            longest += 1;
        }
    }
    longest
}

fn combinations<'a>(
    kinds: &'a [SampleKind],
    contexts: &'a [SecretContext],
) -> Vec<(&'a SampleKind, &'a SecretContext)> {
    let suitable = |kind| {
        contexts.iter().filter(move |context| context.accepts(kind)).map(move |context| (kind, context))
    };
    kinds.iter().flat_map(suitable).collect()
}

fn case(seed: u64, number: usize, (kind, context): (&SampleKind, &SecretContext)) -> CorpusCase {
    let mut rng =
        CorpusRng::new(seed.wrapping_add(1).wrapping_mul(0x1_0000_0001).wrapping_add(number as u64));
    let generated = kind.generate(&mut rng);
    let name = kind.random_name(&mut rng);
    let rendered = (context.render)(&mut rng, &NamedSample { kind, name, generated });
    CorpusCase { text: rendered.text, secret: rendered.secret, kind: kind.name, context: context.name }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn covers_all_combinations() {
        let (kinds, contexts) = (kinds(), contexts());
        let all = combinations(&kinds, &contexts);
        let seen: BTreeSet<_> = cases(1, 5_100).iter().map(|case| (case.kind, case.context)).collect();
        assert_eq!(seen.len(), all.len(), "5,100 cases are too few for all combinations");
        let names: BTreeSet<_> = kinds.iter().map(|kind| kind.name).collect();
        assert_eq!(names.len(), kinds.len(), "two kinds have one name");
        assert!(kinds.len() >= 150 && contexts.len() >= 45, "the corpus has shrunk");
    }

    #[test]
    fn each_text_contains_its_secret_once() {
        for seed in 0..6 {
            for case in cases(seed, 5_000) {
                let times = case.text.matches(&case.secret).count();
                assert_eq!(times, 1, "{} in {}: {} in {}", case.kind, case.context, case.secret, case.text);
                assert!(case.secret.chars().count() >= 7, "{}: {}", case.kind, case.secret);
                assert_eq!(longest_leak(&case, &case.text), case.secret.chars().count());
            }
        }
    }

    #[test]
    fn a_seed_determines_the_cases() {
        let texts = |seed| cases(seed, 300).into_iter().map(|case| case.text).collect::<Vec<_>>();
        assert_eq!(texts(7), texts(7));
        assert_ne!(texts(7), texts(8));
    }

    #[test]
    fn benign_texts_are_many_and_distinct() {
        let texts = benign();
        let distinct: BTreeSet<_> = texts.iter().collect();
        assert_eq!(distinct.len(), texts.len());
        assert!(texts.len() >= 150, "{} texts", texts.len());
    }
}
