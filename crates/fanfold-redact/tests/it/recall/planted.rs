//! A text that knows which of its bytes belong to the planted secret, through any number of encodings.

use fanfold_redact::Secret;

use crate::corpus::CorpusCase;

/// The role of a byte.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Other,
    /// The first byte of a character of the secret, or of its escape.
    SecretStart,
    /// A further byte of such a character.
    SecretRest,
}

/// A text with one secret.
pub(super) struct PlantedText {
    pub(super) text: String,
    roles: Vec<Role>,
}

impl PlantedText {
    pub(super) fn new(case: &CorpusCase) -> PlantedText {
        let (before, after) = case.text.split_once(&case.secret).expect("a case contains its secret");
        let mut planted = PlantedText { text: String::new(), roles: Vec::new() };
        before.chars().for_each(|c| planted.push(c.encode_utf8(&mut [0; 4]), false));
        case.secret.chars().for_each(|c| planted.push(c.encode_utf8(&mut [0; 4]), true));
        after.chars().for_each(|c| planted.push(c.encode_utf8(&mut [0; 4]), false));
        planted
    }

    fn push(&mut self, piece: &str, is_secret: bool) {
        self.text.push_str(piece);
        let (first, rest) =
            if is_secret { (Role::SecretStart, Role::SecretRest) } else { (Role::Other, Role::Other) };
        self.roles.extend((0..piece.len()).map(|i| if i == 0 { first } else { rest }));
    }

    /// The text with each character replaced by an escape.
    pub(super) fn escape(&self, escape: impl Fn(char) -> String) -> PlantedText {
        self.rewrite(|_, c| (String::new(), escape(c)))
    }

    /// The text between two others.
    pub(super) fn wrap(&self, before: &str, after: &str) -> PlantedText {
        let start = |at| if at == 0 { before.to_owned() } else { String::new() };
        let mut wrapped = self.rewrite(|at, c| (start(at), c.to_string()));
        wrapped.push(after, false);
        wrapped
    }

    /// The text with a prefix before each line. The prefix depends on the number of the line, from 1.
    pub(super) fn prefix_lines(&self, prefix: impl Fn(usize) -> String) -> PlantedText {
        self.rewrite(|at, c| {
            let is_start = at == 0 || self.text.as_bytes()[at - 1] == b'\n';
            let n = 1 + self.text[..at].matches('\n').count();
            (if is_start { prefix(n) } else { String::new() }, c.to_string())
        })
    }

    /// The text with other texts before the secret, after its first four characters, and after it.
    pub(super) fn insert(&self, before: &str, within: &str, after: &str) -> PlantedText {
        let first = self.roles.iter().position(|role| *role == Role::SecretStart).unwrap_or_default();
        let fifth = first + self.text[first..].chars().take(4).map(char::len_utf8).sum::<usize>();
        let end = self.roles.iter().rposition(|role| *role != Role::Other).map_or(0, |last| last + 1);
        let mut changed = self.rewrite(|at, c| {
            let inserted =
                [(first, before), (fifth, within), (end, after)].into_iter().find(|(i, _)| *i == at);
            (inserted.map(|(_, text)| text.to_owned()).unwrap_or_default(), c.to_string())
        });
        if end == self.text.len() {
            changed.push(after, false);
        }
        changed
    }

    /// Replaces each character by a text before it and its encoding.
    fn rewrite(&self, encode: impl Fn(usize, char) -> (String, String)) -> PlantedText {
        let mut changed = PlantedText { text: String::new(), roles: Vec::new() };
        for (at, c) in self.text.char_indices() {
            let (before, encoded) = encode(at, c);
            changed.push(&before, false);
            let start = changed.roles.len();
            changed.push(&encoded, self.roles[at] != Role::Other);
            if self.roles[at] == Role::SecretRest {
                changed.roles[start] = Role::SecretRest;
            }
        }
        changed
    }

    /// The length of the longest part of the secret that no range covers, in characters. Bytes that do not belong to
    /// the secret, such as a colour in the middle, do not interrupt a part.
    pub(super) fn longest_remaining(&self, found: &[Secret]) -> usize {
        let (mut longest, mut current) = (0, 0);
        let mut secrets = found.iter().peekable();
        for (at, role) in self.roles.iter().enumerate() {
            while secrets.next_if(|secret| secret.range.end <= at).is_some() {}
            if *role != Role::SecretStart {
                continue;
            }
            let is_masked = secrets.peek().is_some_and(|secret| secret.range.contains(&at));
            current = if is_masked { 0 } else { current + 1 };
            longest = longest.max(current);
        }
        longest
    }
}
