//! Recall of the redactor on the corpus, for each encoding of the text around a secret.

mod planted; //  a text and the bytes of its secret
mod settings; // colours, quotes, JSON, prefixes of lines

use std::collections::BTreeMap;
use std::fmt;

use fanfold_redact::find_secrets;

use super::corpus::cases;
use planted::PlantedText;
use settings::SETTINGS;

/// A secret counts as masked if at most this many consecutive characters of it remain.
const MAX_REMAINING: usize = 4;

/// The recall in one setting.
pub(crate) struct SettingRecall {
    pub(crate) setting: &'static str,
    pub(crate) n_secrets: usize,
    pub(crate) n_masked: usize,
    /// The number of missed secrets by kind and context, each with one text.
    pub(crate) missed: BTreeMap<(&'static str, &'static str), (usize, String)>,
}

impl SettingRecall {
    pub(crate) fn recall(&self) -> f64 {
        self.n_masked as f64 / self.n_secrets as f64
    }
}

/// A row of the table.
impl fmt::Display for SettingRecall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{},{},{:.4}", self.setting, self.n_secrets, self.n_masked, self.recall())
    }
}

/// The head of the table.
pub(crate) const COLUMNS: &str = "setting,secrets,masked,recall";

/// The recall in every setting, on the first `n` cases of a seed.
pub(crate) fn recall_by_setting(seed: u64, n: usize) -> Vec<SettingRecall> {
    let cases = cases(seed, n);
    let measure = |setting: &settings::Setting| {
        let mut missed = BTreeMap::new();
        let mut n_missed = 0;
        for case in &cases {
            let text = (setting.apply)(PlantedText::new(case));
            if text.longest_remaining(&find_secrets(&text.text)) > MAX_REMAINING {
                n_missed += 1;
                missed.entry((case.kind, case.context)).or_insert((0, text.text)).0 += 1;
            }
        }
        SettingRecall {
            setting: setting.name,
            n_secrets: cases.len(),
            n_masked: cases.len() - n_missed,
            missed,
        }
    };
    SETTINGS.iter().map(measure).collect()
}
