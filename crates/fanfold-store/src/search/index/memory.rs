//! A full text index in memory: the positions of each word in each message.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;

use crate::search::query::{ExpandedQuery, Phrase, WordPattern};
use crate::search::text::message_text::message_text;
use crate::search::text::words::for_each_word;

/// The usual constants of BM25: the saturation of the term frequency, and the weight of the message length.
const K1: f64 = 1.2;
const B: f64 = 0.75;

/// A full text index in memory.
#[derive(Debug, Default)]
pub(crate) struct MemoryIndex {
    /// For each word, the positions of it in each message.
    positions: BTreeMap<String, BTreeMap<u64, Vec<u32>>>,
    /// The number of words in each message.
    lengths: HashMap<u64, u32>,
    /// The number of words in all messages.
    n_words: u64,
    /// Set if the index contains only the words of a query and only some of the messages.
    statistics: Option<WordStatistics>,
}

/// Estimated statistics of all messages, to rank some of them.
#[derive(Debug)]
pub(crate) struct WordStatistics {
    /// The number of messages.
    pub(crate) n_messages: f64,
    /// The approximate number of messages that contain each word.
    pub(crate) n_with: HashMap<String, f64>,
}

impl MemoryIndex {
    /// Creates an index of the words of a query only, to rank some messages of a larger index.
    pub(crate) fn for_query(query: &ExpandedQuery, sample: WordStatistics) -> MemoryIndex {
        let mut index = MemoryIndex { statistics: Some(sample), ..MemoryIndex::default() };
        for phrase in query.phrases() {
            for word in &phrase.words {
                index.positions.entry(word.clone()).or_default();
            }
        }
        index
    }

    /// Indexes a message. Messages must be added in ascending order of their numbers.
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
    }

    /// Returns up to `limit` words that match a pattern, the shortest first, because they are closest to the pattern.
    pub(crate) fn matching_words(&self, pattern: &WordPattern, limit: usize) -> Vec<String> {
        let mut matching: Vec<&String> = match pattern {
            WordPattern::Exact(word) => {
                self.positions.get_key_value(*word).map(|(word, _)| word).into_iter().collect()
            }
            WordPattern::StartsWith(part) => {
                let from = self.positions.range::<str, _>((Bound::Included(*part), Bound::Unbounded));
                from.map(|(word, _)| word).take_while(|word| pattern.matches(word)).collect()
            }
            WordPattern::EndsWith(_) | WordPattern::Contains(_) => {
                self.positions.keys().filter(|word| pattern.matches(word)).collect()
            }
        };
        matching.sort_by_key(|word| (word.len(), *word));
        matching.into_iter().take(limit).cloned().collect()
    }

    /// Returns the numbers of the messages that match a query, in ascending order, with their scores.
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

    /// Returns the messages that contain at least one of the phrases, with their BM25 scores.
    fn score_phrases(&self, phrases: &[Phrase]) -> BTreeMap<u64, f64> {
        let n_messages = self.lengths.len().max(1) as f64;
        let mean_length = (self.n_words as f64 / n_messages).max(1.0);
        let mut scored: BTreeMap<u64, f64> = BTreeMap::new();
        for phrase in phrases {
            let counts = self.phrase_counts(phrase);
            let n_found = counts.len() as f64;
            let weight = match &self.statistics {
                Some(sample) => {
                    let n_with = phrase.words.iter().filter_map(|word| sample.n_with.get(word).copied());
                    inverse_frequency(sample.n_messages, n_with.fold(sample.n_messages / 2.0, f64::min))
                }
                None => inverse_frequency(n_messages, n_found),
            };
            for (number, count) in counts {
                let length = f64::from(self.lengths[&number]);
                let count = f64::from(count);
                let score = weight * count * (K1 + 1.0) / (count + K1 * (1.0 - B + B * length / mean_length));
                *scored.entry(number).or_default() += score;
            }
        }
        scored
    }

    /// Returns the number of occurrences of a phrase in each message.
    fn phrase_counts(&self, phrase: &Phrase) -> BTreeMap<u64, u32> {
        let (last, before) = phrase.words.split_last().expect("a phrase has at least one word");
        let before: Option<Vec<&BTreeMap<u64, Vec<u32>>>> =
            before.iter().map(|word| self.positions.get(word)).collect();
        let mut counts = BTreeMap::new();
        let (Some(lasts), Some(before)) = (self.positions.get(last), before) else { return counts };
        for (number, ends) in lasts {
            let Some(positions) =
                before.iter().map(|messages| messages.get(number)).collect::<Option<Vec<_>>>()
            else {
                continue;
            };
            let is_phrase_end = |end: &&u32| {
                positions.iter().rev().zip(1..).all(|(positions, back)| {
                    end.checked_sub(back).is_some_and(|position| positions.binary_search(&position).is_ok())
                })
            };
            let count = ends.iter().filter(is_phrase_end).count() as u32;
            if count > 0 {
                *counts.entry(*number).or_default() += count;
            }
        }
        counts
    }
}

/// The inverse document frequency of a word that `n_with` of `n_messages` messages contain.
fn inverse_frequency(n_messages: f64, n_with: f64) -> f64 {
    ((n_messages - n_with + 0.5) / (n_with + 0.5)).max(1.0).ln().max(1e-6)
}
