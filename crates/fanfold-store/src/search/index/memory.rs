//! Full text in memory: for each word, where it stands in which messages.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;

use crate::search::query::{ExpandedQuery, Phrase, WordPattern};
use crate::search::text::message_text::message_text;
use crate::search::text::words::for_each_word;

/// The usual constants of BM25: how soon more of a word adds less, and how much length counts.
const K1: f64 = 1.2;
const B: f64 = 0.75;

/// Where each word stands.
#[derive(Debug, Default)]
pub(crate) struct MemoryIndex {
    /// For each word, the messages that have it, and where.
    positions: BTreeMap<String, BTreeMap<u64, Vec<u32>>>,
    /// How many words each message has.
    lengths: HashMap<u64, u32>,
    n_words: u64,
    /// The last message that is indexed.
    last_number: u64,
    /// Where only the words of a query are indexed, of some messages of many.
    statistics: Option<WordStatistics>,
}

/// What is known of all messages, where some of them are ranked.
#[derive(Debug)]
pub(crate) struct WordStatistics {
    /// How many messages there are.
    pub(crate) n_messages: f64,
    /// About how many of them have a word.
    pub(crate) n_with: HashMap<String, f64>,
}

impl MemoryIndex {
    /// An index of the words of a query alone, to rank some messages of many.
    pub(crate) fn for_query(query: &ExpandedQuery, sample: WordStatistics) -> MemoryIndex {
        let mut index = MemoryIndex { statistics: Some(sample), ..MemoryIndex::default() };
        for phrase in query.phrases() {
            for word in &phrase.words {
                index.positions.entry(word.clone()).or_default();
            }
        }
        index
    }

    /// The last message that is indexed.
    pub(crate) fn last_number(&self) -> u64 {
        self.last_number
    }

    /// Indexes a message; they come by their numbers.
    pub(crate) fn add(&mut self, number: u64, json: &str) {
        let mut n_words = 0;
        for_each_word(&message_text(json), |_, word| {
            let messages = match self.positions.get_mut(word) {
                Some(messages) => messages,
                None if self.statistics.is_some() => {
                    n_words += 1;
                    return;
                }
                None => self.positions.entry(word.to_owned()).or_default(),
            };
            messages.entry(number).or_default().push(n_words);
            n_words += 1;
        });
        self.lengths.insert(number, n_words);
        self.n_words += u64::from(n_words);
        self.last_number = number;
    }

    /// Forgets all but some messages.
    pub(crate) fn retain(&mut self, is_kept: impl Fn(u64) -> bool) {
        self.positions.retain(|_, messages| {
            messages.retain(|number, _| is_kept(*number));
            !messages.is_empty()
        });
        self.lengths.retain(|number, _| is_kept(*number));
        self.n_words = self.lengths.values().map(|length| u64::from(*length)).sum();
    }

    /// Words like this, the shortest first: they are hardly more than the part, and the closest to what is meant.
    pub(crate) fn matching_words(&self, like: &WordPattern, limit: usize) -> Vec<String> {
        let mut alike: Vec<&String> = match like {
            WordPattern::Exact(word) => {
                self.positions.get_key_value(*word).map(|(word, _)| word).into_iter().collect()
            }
            WordPattern::StartsWith(part) => {
                let from = self.positions.range::<str, _>((Bound::Included(*part), Bound::Unbounded));
                from.map(|(word, _)| word).take_while(|word| like.matches(word)).collect()
            }
            WordPattern::EndsWith(_) | WordPattern::Contains(_) => {
                self.positions.keys().filter(|word| like.matches(word)).collect()
            }
        };
        alike.sort_by_key(|word| (word.len(), *word));
        alike.into_iter().take(limit).cloned().collect()
    }

    /// The messages that a query asks for, with their scores, by their numbers.
    pub(crate) fn candidates(&self, query: &ExpandedQuery) -> Vec<(u64, f64)> {
        let mut scores: BTreeMap<u64, f64> = BTreeMap::new();
        for group in &query.alternatives {
            let mut found: Option<BTreeMap<u64, f64>> = None;
            for term in &group.required {
                let scored = self.score_phrases(term);
                found = Some(match found {
                    None => scored,
                    Some(mut found) => {
                        found.retain(|number, _| scored.contains_key(number));
                        found.iter_mut().for_each(|(number, score)| *score += scored[number]);
                        found
                    }
                });
            }
            let mut found = found.unwrap_or_default();
            for term in &group.excluded {
                let unwanted = self.score_phrases(term);
                found.retain(|number, _| !unwanted.contains_key(number));
            }
            for (number, score) in found {
                *scores.entry(number).or_default() += score;
            }
        }
        scores.into_iter().collect()
    }

    /// The messages that have one of some phrases, with what that is worth.
    fn score_phrases(&self, phrases: &[Phrase]) -> BTreeMap<u64, f64> {
        let n_messages = self.lengths.len().max(1) as f64;
        let usual_length = (self.n_words as f64 / n_messages).max(1.0);
        let mut scored: BTreeMap<u64, f64> = BTreeMap::new();
        for phrase in phrases {
            let counts = self.phrase_counts(phrase);
            let n_found = counts.len() as f64;
            let rarity = match &self.statistics {
                Some(sample) => {
                    let n_with = phrase.words.iter().filter_map(|word| sample.n_with.get(word).copied());
                    rarity(sample.n_messages, n_with.fold(sample.n_messages / 2.0, f64::min))
                }
                None => rarity(n_messages, n_found),
            };
            for (number, count) in counts {
                let length = f64::from(self.lengths[&number]);
                let count = f64::from(count);
                let score =
                    rarity * count * (K1 + 1.0) / (count + K1 * (1.0 - B + B * length / usual_length));
                *scored.entry(number).or_default() += score;
            }
        }
        scored
    }

    /// How often each message has a phrase.
    fn phrase_counts(&self, phrase: &Phrase) -> BTreeMap<u64, u32> {
        let (last, before) = phrase.words.split_last().expect("a phrase has a word");
        let before: Option<Vec<&BTreeMap<u64, Vec<u32>>>> =
            before.iter().map(|word| self.positions.get(word)).collect();
        let mut counts = BTreeMap::new();
        let (Some(lasts), Some(before)) = (self.positions.get(last), before) else { return counts };
        for (number, ends) in lasts {
            let Some(places) = before.iter().map(|messages| messages.get(number)).collect::<Option<Vec<_>>>()
            else {
                continue;
            };
            let is_behind = |end: &&u32| {
                places.iter().rev().zip(1..).all(|(places, back)| {
                    end.checked_sub(back).is_some_and(|place| places.binary_search(&place).is_ok())
                })
            };
            let count = ends.iter().filter(is_behind).count() as u32;
            if count > 0 {
                *counts.entry(*number).or_default() += count;
            }
        }
        counts
    }
}

/// What a word is worth that so many messages have.
fn rarity(n_messages: f64, n_with: f64) -> f64 {
    ((n_messages - n_with + 0.5) / (n_with + 0.5)).max(1.0).ln().max(1e-6)
}
