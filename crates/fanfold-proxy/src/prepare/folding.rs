//! A body folded on a blocking thread, within a deadline. Whatever goes wrong, there is a body to send: the one that came.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fanfold_core::Tokens;
use fanfold_engine::{
    Ask, Engine, Left, Mode, Recognised, Recollection, Refused, Terms, Trouble, store_words,
};
use fanfold_store::SessionId;
use fanfold_wire::reply::is_summary_request;
use fanfold_wire::{Format, Incoming};
use tokio::sync::Semaphore;

use crate::admission::body_quota::Space;
use crate::config::Config;
use crate::meter::Meter;
use crate::prepare::learnt_windows::Windows;
use crate::prepare::memory::Minded;
use crate::prepare::pending_recalls::Waiting;
use crate::prepare::prepared_body::{Counted, Made, Reason, Sent};
use crate::prepare::recall_offer::{Recall, has_tools};
use crate::prepare::reconnecting_engine::Desk;
use crate::prepare::subagents::{Asker, Crew};
use crate::prepare::summary_jobs::Errands;
use crate::prepare::window_probe::Unknown;

/// Who asks, as sessions have it.
const SOURCE: &str = "proxy";
/// And who asks for another agent.
const SUBAGENT: &str = "subagent";
/// A body that was refused waits so many times as long for its fold: without one there is nothing to send.
const PATIENCE: u32 = 5;
/// So many bytes of a body are worked on at one place: what is made of them takes several times as much memory.
const PER_PLACE: usize = 4 << 20;

/// A body that is to be folded.
#[derive(Clone)]
pub(crate) struct Wanted {
    /// The body, unpacked.
    pub(crate) body: Bytes,
    pub(crate) format: Format,
    /// The model that it names.
    pub(crate) model: Option<String>,
    /// The session that the client named.
    pub(crate) named: Option<String>,
    /// Who asks, as the client tells it.
    pub(crate) asker: Asker,
    /// The address that it goes to.
    pub(crate) upstream: String,
    /// What the provider said, just now, that it takes of this model at most.
    pub(crate) told: Option<Tokens>,
    /// What its server says of its window, if no table has it.
    pub(crate) unknown: Option<Unknown>,
    /// Whether the provider takes the tool that opens folds, as far as that is known.
    pub(crate) takes_tool: bool,
    /// What the provider said when it refused the body.
    pub(crate) refused: Option<Refused>,
    /// What is remembered for it.
    pub(crate) memory: Option<Minded>,
    /// Where it is held, if unpacking made it larger.
    pub(crate) _space: Arc<Space>,
    /// What was spent of its deadline before.
    pub(crate) spent: Duration,
}

/// Folds bodies.
pub(crate) struct Folder {
    pub(crate) desk: Arc<Desk>,
    errands: Arc<Errands>,
    meter: Arc<Meter>,
    windows: Arc<Windows>,
    crew: Arc<Crew>,
    pub(crate) waiting: Waiting,
    mode: Mode,
    recall: Recall,
    deadline: Duration,
    /// How many are worked on at once. One that is late keeps its place until it is done, and a large one has several.
    pub(crate) places: Arc<Semaphore>,
    n_places: usize,
}

impl Folder {
    pub(crate) fn new(config: &Config) -> Folder {
        let desk = Arc::new(Desk::new(Arc::clone(&config.host)));
        Folder {
            errands: Arc::new(Errands::new(Arc::clone(&desk), Arc::clone(&config.meter))),
            desk,
            meter: Arc::clone(&config.meter),
            windows: Arc::default(),
            crew: Arc::default(),
            waiting: Waiting::default(),
            mode: config.mode,
            recall: config.recall,
            deadline: config.limits.deadline,
            places: Arc::new(Semaphore::new(config.limits.folding)),
            n_places: config.limits.folding,
        }
    }

    pub(crate) fn mode(&self) -> Mode {
        self.mode
    }

    /// Folds a body, or says why it leaves as it came.
    pub(crate) async fn fold(&self, wanted: Wanted) -> Made {
        let most = match wanted.refused {
            Some(_) => self.deadline * PATIENCE,
            None => self.deadline.saturating_sub(wanted.spent),
        };
        let n_places = u32::try_from((1 + wanted.body.len() / PER_PLACE).min(self.n_places)).unwrap_or(1);
        let until = Instant::now() + most;
        let (body, format) = (wanted.body.clone(), wanted.format);
        let work = async {
            let Ok(place) = Arc::clone(&self.places).acquire_many_owned(n_places).await else {
                return Made::as_it_came(Reason::Deadline);
            };
            let (desk, meter, windows) =
                (Arc::clone(&self.desk), Arc::clone(&self.meter), Arc::clone(&self.windows));
            let (crew, errands) = (Arc::clone(&self.crew), Arc::clone(&self.errands));
            let (mode, recall) = (self.mode, self.recall);
            let work = tokio::task::spawn_blocking(move || {
                let folding = Folding {
                    desk: &desk,
                    errands: &errands,
                    meter: &meter,
                    windows: &windows,
                    crew: &crew,
                    mode,
                    recall,
                    until,
                };
                let made = folding.fold(&wanted);
                drop(place);
                made
            });
            work.await.unwrap_or_else(|_| Made::as_it_came(Reason::Panicked))
        };
        let made = tokio::time::timeout(most, work).await;
        let mut made = made.unwrap_or_else(|_| Made::as_it_came(Reason::Deadline));
        // Whatever became of it: without the results that it waits for, the provider would refuse it.
        made.body = made.body.or_else(|| self.waiting.put_into(&body, format));
        made
    }
}

/// One body being folded.
struct Folding<'a> {
    desk: &'a Desk,
    errands: &'a Errands,
    meter: &'a Meter,
    windows: &'a Windows,
    crew: &'a Crew,
    mode: Mode,
    recall: Recall,
    until: Instant,
}

impl Folding<'_> {
    fn fold(&self, wanted: &Wanted) -> Made {
        let Ok(body) = std::str::from_utf8(&wanted.body) else {
            return Made::as_it_came(Reason::NotDecoded);
        };
        let engine = self.desk.engine();
        let opened = match &engine {
            Ok(engine) => engine.open(body, wanted.format),
            Err(_) => Incoming::open(body, Some(wanted.format)),
        };
        let incoming = match opened {
            Ok(incoming) => incoming,
            Err(error) => return self.trouble(&error.into(), None),
        };
        // It wants all of it; only where that is too long, it gets what there is room for.
        if wanted.refused.is_none() && is_summary_request(&incoming) {
            return Made::as_it_came(Reason::Summary);
        }
        let terms = match self.desk.host().terms(wanted.model.as_deref(), wanted.format) {
            Ok(terms) => terms,
            Err(why) => {
                tracing::warn!(why, "a body leaves as it came: there are no terms");
                return Made::as_it_came(Reason::Terms);
            }
        };
        let engine = match engine {
            Ok(engine) => engine,
            Err(why) => {
                tracing::warn!(why, "a body leaves as it came: the store could not be opened");
                return Made::as_it_came(Reason::Store);
            }
        };
        let model = wanted.model.as_deref();
        if let Some(told) = wanted.told {
            self.windows.learn(&wanted.upstream, model, told, &engine);
        }
        let terms = within(terms, self.windows.of(&wanted.upstream, model, &engine));
        match self.ask(&engine, wanted, (body, incoming), &terms) {
            Ok(made) => made,
            Err(trouble) => self.trouble(&trouble, None),
        }
    }

    fn ask(
        &self,
        engine: &Arc<Engine>,
        wanted: &Wanted,
        (body, incoming): (&str, Incoming),
        terms: &Terms,
    ) -> Result<Made, Trouble> {
        let began = Instant::now();
        // What the model recalled beside calls of the client's is put back first: it belongs to the conversation.
        let (session, is_new, whole) = match &wanted.named {
            Some(named) => {
                let session = SessionId(named.clone());
                let is_new = engine.store().session(&session)?.is_none();
                let whole = match is_new {
                    true => None,
                    false => engine.with_recalls_of(&session, body, wanted.format)?,
                };
                if whole.is_none() {
                    engine.expect(incoming);
                }
                (session, is_new, whole)
            }
            None => {
                let (recognised, whole) = engine.recognise_whole(incoming)?;
                (engine.take_up(&recognised)?, recognised == Recognised::New, whole)
            }
        };
        let has_recalls = whole.is_some();
        let body = whole.as_deref().unwrap_or(body);
        let settled = wanted
            .unknown
            .as_ref()
            .map(|unknown| unknown.settle(engine, &session, is_new, terms))
            .transpose()?;
        let most = || self.windows.of(&wanted.upstream, wanted.model.as_deref(), engine);
        let settled = settled.map(|terms| within(terms, most()));
        let terms = settled.as_ref().unwrap_or(terms);
        let recognised = Instant::now();
        if let Some(refused) = &wanted.refused
            && let Err(error) = engine.refused(&session, refused)
        {
            tracing::warn!(%session, %error, "a refusal could not be noted");
        }
        let parent = if is_new { self.crew.parent(&wanted.asker) } else { None };
        // One that is gone is nobody's parent.
        let parent = match parent {
            Some(parent) => engine.store().session(&parent)?.map(|row| row.id),
            None => None,
        };
        let source = if wanted.asker.is_subagent { SUBAGENT } else { SOURCE };
        let mut ask = Ask::new(&session, body, terms, source);
        ask.parent = parent.as_ref();
        (ask.mode, ask.until) = (self.mode, Some(self.until));
        let recall = if wanted.takes_tool { self.recall } else { self.recall.without_tool() };
        let offer = is_new.then(|| recall.offer(body, wanted.format));
        ask.offer = offer.as_ref();
        let recall = || wanted.memory.as_ref().and_then(Minded::text);
        ask.memory =
            wanted.memory.as_ref().map(|memory| Recollection { room: memory.room(), recall: &recall });
        let answer = engine.request(&ask);
        let steps =
            vec![("recognise", began, recognised - began), ("fold", recognised, recognised.elapsed())];
        let left = match &answer.left {
            Left::AsItCame(trouble) => {
                let mut made = self.trouble(trouble, Some(&session));
                let overflow = answer.sizes.map(|sizes| (sizes, terms.budget));
                made.glance =
                    overflow.map(|(sizes, budget)| self.meter.glance_at_overflow(&session, sizes, budget));
                made.session = Some(session);
                return Ok(made);
            }
            Left::Folded(_) => Sent::Folded,
            Left::Whole
                if self.mode == Mode::Observe && answer.sizes.is_some_and(|sizes| sizes.n_folds > 0) =>
            {
                Sent::Observed
            }
            Left::Whole => Sent::Whole,
        };
        self.desk.told(None);
        // What asks for a title, say, has no tools, and starts no other agents.
        if has_tools(body) {
            self.crew.is_at(&wanted.asker, &session);
        }
        let counted = answer.sizes.map(|sizes| {
            let tokens = if left == Sent::Folded { sizes.view } else { sizes.transcript };
            let tokens = tokens + answer.memory.unwrap_or_default();
            Counted { tokens, window: terms.budget.window() }
        });
        let n_new = answer.n_new;
        let glance = engine.look(&session, |followed| self.meter.glance(&session, followed, n_new));
        if let Some(glance) = &glance {
            self.meter.noticed(&session, &answer.notices, Tokens(glance.sent), Tokens(glance.room));
        }
        if let Some(memory) = &wanted.memory {
            memory.offer(engine, &session, &answer.new_handles);
        }
        let is_changed = left == Sent::Folded || answer.has_tool || has_recalls || answer.memory.is_some();
        if left == Sent::Folded {
            self.errands.after(engine, &session, &terms.focus);
        }
        let body = is_changed.then(|| Bytes::from(answer.body));
        let has_tool = answer.has_tool;
        Ok(Made { body, session: Some(session), left, has_tool, counted, glance, steps })
    }

    /// What something that did not work means for the body.
    fn trouble(&self, trouble: &Trouble, session: Option<&SessionId>) -> Made {
        if let Trouble::Store(error) = trouble {
            self.desk.told(Some(error));
        }
        let session = session.map_or("", |session| &session.0);
        let reason = Reason::from(trouble);
        // What is wrong with a body may quote it, so only a store's words and sizes are told.
        match trouble {
            Trouble::Store(error) => {
                let store = store_words(error);
                tracing::warn!(session, why = %reason, store, "a body leaves as it came");
            }
            Trouble::Overflow(overflow) => {
                let (needs, has) = (overflow.smallest.0, overflow.room.0);
                tracing::warn!(session, why = %reason, needs, has, "a body leaves as it came: a larger --window would do");
            }
            _ => tracing::warn!(session, why = %reason, "a body leaves as it came"),
        }
        Made::as_it_came(reason)
    }
}

/// Terms within what the provider takes.
fn within(terms: Terms, most: Option<Tokens>) -> Terms {
    let Some(window) = most.filter(|most| *most < terms.budget.window()) else { return terms };
    Terms { budget: terms.budget.narrowed(window), ..terms }
}

#[cfg(test)]
mod tests {
    use fanfold_core::{Budget, Policy, Words};

    use super::*;

    #[test]
    fn what_a_provider_takes_has_the_reserve_of_its_size() {
        let terms = |budget| Terms {
            engine: fanfold_core::EngineFactory::FANFOLD,
            policy: Policy::named("fanfold").unwrap(),
            budget,
            prices: None,
            counter: &Words,
            format: None,
            focus: String::new(),
            assumed: Vec::new(),
            described: String::new(),
        };
        for limit in [4_000, 8_000, 10_000, 32_000].map(Tokens) {
            let narrowed = within(terms(Budget::of_window(Tokens(400_000))), Some(limit)).budget;
            assert_eq!(narrowed, Budget::of_window(limit));
            assert!(narrowed.room() > Tokens(limit.0 / 2), "there is room in {limit}");
        }
        let wide = Budget::of_window(Tokens(400_000));
        assert_eq!(within(terms(wide), None).budget, wide);
        assert_eq!(within(terms(wide), Some(Tokens(500_000))).budget, wide);
    }
}
