//! Runs the examples in the headers of the kinds of actions.

use crate::examples::{FourBytes, example, header_of};
use crate::model::parallel::Sequential;
use crate::model::transcript::{EntryId, Transcript};
use crate::notation::parse;
use crate::record::standing::numbered_steps;
use crate::record::write::{RecordInput, write_record};
use crate::select::analysis::Analysis;
use crate::select::scorer::Relevance;

/// The record of a conversation in about `budget` tokens.
fn record_of(conversation: &str, budget: usize) -> String {
    let mut transcript = Transcript::new();
    for entry in parse(conversation).expect("valid notation") {
        transcript.append(entry, &FourBytes);
    }
    let mut analysis = Analysis::default();
    analysis.index(&transcript, &[], &Sequential, transcript.len());
    let entries: Vec<EntryId> = (0..transcript.len()).map(EntryId::from).collect();
    let steps = numbered_steps(&mut analysis, &transcript, &[], transcript.len());
    let relevance = Relevance::new(&[], "", "");
    let Analysis { lexicon, values, .. } = &mut analysis;
    let input = RecordInput {
        transcript: &transcript,
        counter: &FourBytes,
        lexicon,
        relevance: &relevance,
        visible: Vec::new(),
        entries: &entries,
        steps: &steps,
        recall: "",
        is_first: false,
        is_newest: false,
    };
    let written = write_record(&input, values, budget);
    let texts: Vec<String> = written.parts.into_iter().map(|(_, text)| text).collect();
    texts.join("\n").replace("<fanfold>\n", "").replace("\n</fanfold>", "")
}

#[test]
fn header_examples_match_the_record() {
    const BUDGET: usize = 150;
    let sources = [
        include_str!("kinds/command.rs"),
        include_str!("kinds/data.rs"),
        include_str!("kinds/listing.rs"),
        include_str!("kinds/read.rs"),
        include_str!("kinds/report.rs"),
        include_str!("kinds/search.rs"),
        include_str!("kinds/written.rs"),
    ];
    let mut wrong = String::new();
    for source in sources {
        let header = header_of(source);
        let (before, after) = example(&header).expect("an example");
        let record = record_of(&before, BUDGET);
        if record != after {
            wrong.push_str(&format!("--- {}\n{record}\n", header[0]));
        }
    }
    assert!(wrong.is_empty(), "the correct examples are:\n{wrong}");
}
