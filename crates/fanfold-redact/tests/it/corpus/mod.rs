//! A corpus to measure a secret redactor: made-up secrets as coding agents meet them.
//!
//! It was written from the providers' formats and not from the redactor's rules, so
//! that a rule that is missing shows. All secrets are made at run time from a seed.
//!
//! ```text
//! kind     github-classic                     a made-up token with a true checksum
//! setting  dotenv                             GITHUB_TOKEN=...
//! case     text, and the secret that must not survive in the output
//! ```

mod rng; //       random characters from a seed
mod names; //     what a secret is called
mod kinds; //     what a kind is; the list of all
mod tokens; //    kinds that their format gives away
mod unmarked; //  kinds that only a name gives away; passwords
mod addresses; // URLs, connection strings, headers, cookies
mod keys; //      private keys
mod item; //      a secret, escaped for a setting
mod settings; //  what a setting is; the list of all
mod files; //     settings: files
mod code; //      settings: source code
mod commands; //  settings: commands and requests
mod output; //    settings: what programs print
mod innocent; //  texts that must come through unchanged

pub(crate) use innocent::innocent;

use item::Item;
use kinds::{Kind, kinds};
use rng::Rng;
use settings::{Setting, settings};

/// A text with one secret to take out.
///
/// `k8s-data` and the like may hold other parts worth taking out too; only this one is measured.
pub(crate) struct Case {
    /// What the redactor is given.
    pub(crate) text: String,
    /// The characters that must not survive, as they stand in the text (escaped where the text is).
    pub(crate) secret: String,
    /// Which kind of secret it is.
    pub(crate) kind: &'static str,
    /// Where it stands.
    pub(crate) setting: &'static str,
}

/// The first `n` cases of a seed: each kind in each setting that it fits, in turn.
///
/// 5,100 cases go through all combinations at least once. A case depends on its seed and number alone.
pub(crate) fn cases(seed: u64, n: usize) -> Vec<Case> {
    let (kinds, settings) = (kinds(), settings());
    let combinations = combinations(&kinds, &settings);
    // A prime step that does not divide the number of combinations visits all of them, well mixed.
    let step = [1009, 1013, 1019].into_iter().find(|step| !combinations.len().is_multiple_of(*step));
    let step = step.expect("no number of this size is a multiple of all three");
    (0..n).map(|i| case(seed, i, combinations[i * step % combinations.len()])).collect()
}

/// How many characters of the secret stand in the output in one piece.
///
/// 0 to 4 is fine; the length of the secret is a leak; what lies between is a part that was forgotten.
pub(crate) fn longest_left(case: &Case, output: &str) -> usize {
    let secret: Vec<char> = case.secret.chars().collect();
    let mut longest = 0;
    for start in 0..secret.len() {
        // Only a longer piece than the best one so far is of interest.
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

fn combinations<'a>(kinds: &'a [Kind], settings: &'a [Setting]) -> Vec<(&'a Kind, &'a Setting)> {
    let of_kind =
        |kind| settings.iter().filter(move |setting| setting.takes(kind)).map(move |setting| (kind, setting));
    kinds.iter().flat_map(of_kind).collect()
}

fn case(seed: u64, number: usize, (kind, setting): (&Kind, &Setting)) -> Case {
    let mut rng = Rng::new(seed.wrapping_add(1).wrapping_mul(0x1_0000_0001).wrapping_add(number as u64));
    let made = kind.make(&mut rng);
    let name = kind.name_beside(&mut rng);
    let shown = (setting.show)(&mut rng, &Item { kind, name, made });
    Case { text: shown.text, secret: shown.secret, kind: kind.name, setting: setting.name }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn covers_all_combinations() {
        let (kinds, settings) = (kinds(), settings());
        let all = combinations(&kinds, &settings);
        let seen: BTreeSet<_> = cases(1, 5_100).iter().map(|case| (case.kind, case.setting)).collect();
        assert_eq!(seen.len(), all.len(), "5,100 cases are too few for all combinations");
        let names: BTreeSet<_> = kinds.iter().map(|kind| kind.name).collect();
        assert_eq!(names.len(), kinds.len(), "two kinds have one name");
        assert!(kinds.len() >= 150 && settings.len() >= 45, "the corpus has shrunk");
    }

    #[test]
    fn each_text_holds_its_secret_once() {
        for seed in 0..6 {
            for case in cases(seed, 5_000) {
                let times = case.text.matches(&case.secret).count();
                assert_eq!(times, 1, "{} in {}: {} in {}", case.kind, case.setting, case.secret, case.text);
                assert!(case.secret.chars().count() >= 7, "{}: {}", case.kind, case.secret);
                assert_eq!(longest_left(&case, &case.text), case.secret.chars().count());
            }
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_cases() {
        let texts = |seed| cases(seed, 300).into_iter().map(|case| case.text).collect::<Vec<_>>();
        assert_eq!(texts(7), texts(7));
        assert_ne!(texts(7), texts(8));
    }

    #[test]
    fn innocent_texts_are_many_and_distinct() {
        let texts = innocent();
        let distinct: BTreeSet<_> = texts.iter().collect();
        assert_eq!(distinct.len(), texts.len());
        assert!(texts.len() >= 150, "{} texts", texts.len());
    }
}
