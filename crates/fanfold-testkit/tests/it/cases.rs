//! Generated cases. A failing case is shrunk and printed in notation.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use fanfold_core::{
    Body, Budget, CacheBoundary, Economy, Entry, Policy, Prices, Prompt, Session, Tokens, Words, parse,
    print_entries,
};
use fanfold_testkit::Rng;
use fanfold_testkit::generators::conversations::{ConversationSize, conversation};
use rayon::prelude::*;

/// The result of a check; `Err` describes the failure.
pub(crate) type Verdict = Result<(), String>;

/// A conversation with a policy and a window.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) seed: u64,
    pub(crate) policy: &'static str,
    pub(crate) window: u64,
    pub(crate) entries: Vec<Entry>,
}

impl Case {
    fn from_seed(seed: u64, policies: &[&'static str]) -> Case {
        let mut rng = Rng::new(seed ^ 0x5eed);
        let size = match rng.below(10) {
            0..5 => ConversationSize::Short,
            5..9 => ConversationSize::Medium,
            _ => ConversationSize::Long,
        };
        let window = [20, 50, 100, 200, 400, 800, 1_600, 4_000][rng.below(8)];
        let policy = policies[seed as usize % policies.len()];
        Case { seed, policy, window, entries: conversation(seed, size) }
    }

    /// The case in the file `FANFOLD_CASE`: a line with the policy and the window, then the conversation in
    /// notation.
    fn from_env() -> Option<Case> {
        let text = std::fs::read_to_string(std::env::var_os("FANFOLD_CASE")?).unwrap();
        let (first, rest) = text.split_once('\n').unwrap();
        let (policy, window) = first.split_once(' ').unwrap();
        let policy = Policy::NAMES.into_iter().find(|name| *name == policy).unwrap();
        Some(Case { seed: 0, policy, window: window.trim().parse().unwrap(), entries: parse(rest).unwrap() })
    }

    pub(crate) fn policy(&self) -> Policy {
        Policy::named(self.policy).unwrap()
    }

    /// A quarter of the cases reserve an eighth of the window for the answer, the others nothing.
    pub(crate) fn budget(&self) -> Budget {
        let reserve = if self.seed % 4 == 3 { self.window / 8 } else { 0 };
        Budget::with_reserve(Tokens(self.window), Tokens(reserve))
    }

    /// A session of the policy. Every third one has prices, with thresholds low enough that it folds for economy.
    pub(crate) fn session(&self) -> Session<'static> {
        self.session_with(self.policy())
    }

    /// A session like `session`, with another policy.
    pub(crate) fn session_with(&self, mut policy: Policy) -> Session<'static> {
        let budget = self.budget();
        if self.seed % 3 != 2 || policy.economy.is_none() {
            return Session::new(policy, budget, &Words);
        }
        policy.economy = policy.economy.map(|economy| Economy {
            tail: Tokens(20),
            min_steps: 1,
            full_share_limit: Tokens(100),
            min_saving: Tokens(20),
            min_repeat: Tokens(20),
            cost_limit: 1100,
            ..economy
        });
        let boundary = [CacheBoundary::AnyMessage, CacheBoundary::Breakpoints, CacheBoundary::RequestEnds]
            [self.seed as usize / 3 % 3];
        Session::new(policy, budget, &Words).with_prices(Prices {
            write: 1.25,
            read: 0.25,
            boundary,
            ..Prices::without_cache()
        })
    }

    /// A generator for further choices of this case.
    pub(crate) fn rng(&self) -> Rng {
        Rng::new(self.seed ^ 0xace)
    }
}

/// True if only fast tests are to run, as for mutation tests.
pub(crate) fn is_fast() -> bool {
    std::env::var_os("FANFOLD_FAST").is_some()
}

/// The divisor for the number of cases: 1 with `FANFOLD_MANY=1`, for long runs.
pub(crate) fn case_divisor() -> u64 {
    match std::env::var_os("FANFOLD_MANY") {
        Some(_) => 1,
        None if is_fast() => 16,
        None => 4,
    }
}

/// A failed check.
pub(crate) fn fail<T>(message: impl Into<String>) -> Result<T, String> {
    Err(message.into())
}

/// Checks a property on generated cases of the policies. Panics with the smallest failing case that it finds.
pub(crate) fn check_cases(
    n_cases: u64,
    policies: &[&'static str],
    property: impl Fn(&Case) -> Verdict + Sync,
) {
    let n_cases = n_cases.div_ceil(case_divisor());
    if let Some(case) = Case::from_env() {
        return run(&case, &property).unwrap_or_else(|message| panic!("{message}"));
    }
    let failed = (0..n_cases).into_par_iter().find_map_first(|seed| {
        let case = Case::from_seed(seed, policies);
        run(&case, &property).err().map(|message| (case, message))
    });
    let Some((case, message)) = failed else { return };
    let seed = case.seed;
    let (case, message) = shrink(case, message, &property);
    panic!(
        "{message}\n\nseed {seed}, policy {}, a window of {} words and a room of {}:\n\n{}\n",
        case.policy,
        case.window,
        case.budget().room(),
        print_entries(&case.entries)
    );
}

thread_local! {
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs a property. A panic counts as a failure.
fn run(case: &Case, property: &impl Fn(&Case) -> Verdict) -> Verdict {
    catch_panic(|| property(case)).unwrap_or_else(|panic| Err(format!("panicked: {panic}")))
}

/// Runs a function. Returns the message of a panic as an error and does not print it.
pub(crate) fn catch_panic<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !IS_QUIET.get() {
                usual(panic);
            }
        }));
    });
    IS_QUIET.set(true);
    let result = panic::catch_unwind(AssertUnwindSafe(run));
    IS_QUIET.set(false);
    result.map_err(|panic| match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (_, Some(text)) => text.clone(),
        _ => "a panic without a message".to_owned(),
    })
}

/// Removes entries, calls and words from a case while it still fails.
fn shrink(mut case: Case, mut message: String, property: &impl Fn(&Case) -> Verdict) -> (Case, String) {
    // Mutation tests only count failures.
    let mut n_tries = if is_fast() { 0 } else { 4_000 };
    loop {
        let smaller = candidates(&case).into_iter().find_map(|entries| {
            n_tries -= 1;
            let smaller = Case { entries, ..case.clone() };
            if n_tries < 0 { None } else { run(&smaller, property).err().map(|message| (smaller, message)) }
        });
        match smaller {
            Some(found) => (case, message) = found,
            None => return (case, message),
        }
    }
}

/// Smaller variants of the entries, those with the largest cuts first.
fn candidates(case: &Case) -> Vec<Vec<Entry>> {
    let entries = &case.entries;
    let mut out = Vec::new();
    let mut chunk = entries.len();
    while chunk > 0 {
        for start in (0..entries.len()).step_by(chunk) {
            let end = (start + chunk).min(entries.len());
            out.push([&entries[..start], &entries[end..]].concat());
        }
        chunk /= 2;
    }
    for (i, entry) in entries.iter().enumerate() {
        for smaller in smaller_entries(entry) {
            let mut entries = entries.clone();
            entries[i] = smaller;
            out.push(entries);
        }
    }
    out
}

fn smaller_entries(entry: &Entry) -> Vec<Entry> {
    let mut out = Vec::new();
    match entry {
        Entry::Prompt(prompt) => {
            if !prompt.media.is_empty() {
                out.push(Entry::Prompt(Prompt { media: Vec::new(), ..prompt.clone() }));
            }
            for body in smaller_texts(&prompt.body) {
                let mut smaller = prompt.clone();
                smaller.body = body;
                out.push(Entry::Prompt(smaller));
            }
        }
        Entry::Step(step) => {
            for i in 0..step.calls.len() {
                let mut smaller = step.clone();
                smaller.calls.remove(i);
                out.push(Entry::Step(smaller));
            }
            let with = |change: &dyn Fn(&mut fanfold_core::Step)| {
                let mut smaller = step.clone();
                change(&mut smaller);
                Entry::Step(smaller)
            };
            out.extend(
                smaller_texts(&step.text).into_iter().map(|body| with(&|step| step.text = body.clone())),
            );
            out.extend(
                smaller_texts(&step.reasoning)
                    .into_iter()
                    .map(|body| with(&|step| step.reasoning = body.clone())),
            );
            for (i, call) in step.calls.iter().enumerate() {
                let arguments = smaller_texts(&call.arguments);
                out.extend(
                    arguments.into_iter().map(|body| with(&|step| step.calls[i].arguments = body.clone())),
                );
                let Some(outcome) = &call.result else { continue };
                if !outcome.media.is_empty() {
                    out.push(with(&|step| drop(step.calls[i].result.as_mut().unwrap().media.pop())));
                }
                let shorten =
                    |body: Body| with(&|step| step.calls[i].result.as_mut().unwrap().body = body.clone());
                out.extend(smaller_texts(&outcome.body).into_iter().map(shorten));
            }
        }
    }
    out
}

fn smaller_texts(body: &Body) -> Vec<Body> {
    let text = body.as_str();
    let raw = if body.original().as_ref() == text { "" } else { body.original() };
    if text.is_empty() {
        return Vec::new();
    }
    let at = |part: usize| text.floor_char_boundary(text.len() * part / 4);
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut texts = vec![
        String::new(),
        text[..at(2)].to_owned(),
        text[at(2)..].to_owned(),
        text[..at(3)].to_owned(),
        text[at(1)..].to_owned(),
        words.get(1..).unwrap_or_default().join(" "),
        words.join(" "),
        vec!["a"; words.len()].join(" "),
    ];
    texts.retain(|smaller| smaller.len() < text.len());
    texts
        .into_iter()
        .map(|text| if raw.is_empty() { Body::text(text) } else { Body::with_raw(text, raw) })
        .collect()
}
