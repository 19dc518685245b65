//! Rules of providers for bodies that fanfold has changed, learnt from refusals.
//!
//! Some providers require alternating roles, others reject the recall tool. A changed body that is refused, and not
//! for its length, is sent again with alternating roles, without the tool, with both, and finally unchanged: the
//! client gets the first response that is not such a refusal, or the one it would have got without the proxy. The
//! form that worked is remembered until the proxy stops. A session that lost its tool never gets it back.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use fanfold_engine::{BodyForm, ProviderRules, RefusedBody, SessionEngine};
use fanfold_store::SessionId;
use fanfold_wire::Format;

use crate::outcome::{BypassReason, ProxyOutcome};
use crate::prepare::ClientConversation;
use crate::prepare::prepared_body::PreparedBody;
use crate::shared::Shared;

/// The maximum number of entries; names come from clients.
const MAX_PROVIDERS: usize = 1024;
/// A refusal in one session may concern that session; in this many sessions it concerns the provider.
const SESSIONS_FOR_A_RULE: usize = 2;

/// The forms of a changed body, in the order of the attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum Form {
    /// As the engine makes it.
    #[default]
    AsMade,
    AlternatingRoles,
    WithoutTool,
    AlternatingRolesWithoutTool,
    /// The body of the client.
    Verbatim,
}

impl Form {
    /// The forms to try after this one.
    pub(crate) fn later(self) -> impl Iterator<Item = Form> {
        use Form::{AlternatingRoles, AlternatingRolesWithoutTool, Verbatim, WithoutTool};
        let all = [AlternatingRoles, WithoutTool, AlternatingRolesWithoutTool, Verbatim];
        all.into_iter().filter(move |form| *form > self)
    }

    /// The same for the engine.
    pub(crate) fn body_form(self) -> BodyForm {
        let (alternating_roles, without_recall_tool) = match self {
            Form::AsMade => (false, false),
            Form::AlternatingRoles => (true, false),
            Form::WithoutTool => (false, true),
            Form::AlternatingRolesWithoutTool => (true, true),
            Form::Verbatim => return BodyForm::Verbatim,
        };
        BodyForm::Edited(ProviderRules { without_recall_tool, alternating_roles })
    }
}

/// A model at an upstream, in a format.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ProviderKey {
    upstream: String,
    model: String,
    format: Format,
}

impl ProviderKey {
    pub(crate) fn new(upstream: &str, model: Option<&str>, format: Format) -> ProviderKey {
        let (upstream, model) = (upstream.to_owned(), model.unwrap_or_default().to_owned());
        ProviderKey { upstream, model, format }
    }
}

/// The rules that were learnt.
#[derive(Default)]
pub(crate) struct ProviderQuirks {
    /// Guards the table; entries are updated one at a time.
    by_provider: Mutex<HashMap<ProviderKey, LearntRules>>,
}

#[derive(Default)]
struct LearntRules {
    requires_alternating_roles: bool,
    /// Sessions with a rejected tool.
    without_tool: Vec<Option<SessionId>>,
    /// Sessions with no accepted form but the verbatim one.
    verbatim: Vec<Option<SessionId>>,
}

impl LearntRules {
    fn accepts_tool(&self) -> bool {
        self.without_tool.len() < SESSIONS_FOR_A_RULE
    }
}

impl ProviderQuirks {
    fn table(&self) -> MutexGuard<'_, HashMap<ProviderKey, LearntRules>> {
        self.by_provider.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether a new session may be offered the recall tool.
    pub(crate) fn accepts_tool(&self, provider: &ProviderKey) -> bool {
        self.table().get(provider).is_none_or(LearntRules::accepts_tool)
    }

    /// The form that a provider accepts for changed bodies of a session.
    pub(crate) fn form(&self, provider: &ProviderKey, session: Option<&SessionId>) -> Form {
        let table = self.table();
        let Some(rules) = table.get(provider) else { return Form::AsMade };
        let contains =
            |sessions: &[Option<SessionId>]| sessions.iter().any(|known| known.as_ref() == session);
        let is_verbatim = rules.verbatim.len() >= SESSIONS_FOR_A_RULE || contains(&rules.verbatim);
        let is_without_tool = !rules.accepts_tool() || contains(&rules.without_tool);
        match (is_verbatim, rules.requires_alternating_roles, is_without_tool) {
            (true, _, _) => Form::Verbatim,
            (false, true, true) => Form::AlternatingRolesWithoutTool,
            (false, true, false) => Form::AlternatingRoles,
            (false, false, true) => Form::WithoutTool,
            (false, false, false) => Form::AsMade,
        }
    }

    /// Learns that a form was accepted after another was refused, and logs it once.
    pub(crate) fn learn(&self, provider: &ProviderKey, session: Option<&SessionId>, form: Form) {
        if self.insert(provider, session, form) {
            log_rule(provider, form);
        }
    }

    /// Returns whether this says something new about the provider.
    fn insert(&self, provider: &ProviderKey, session: Option<&SessionId>, form: Form) -> bool {
        let mut table = self.table();
        if table.len() >= MAX_PROVIDERS && !table.contains_key(provider) {
            return false;
        }
        let rules = table.entry(provider.clone()).or_default();
        let mut is_new = false;
        if matches!(form, Form::AlternatingRoles | Form::AlternatingRolesWithoutTool) {
            is_new |= !std::mem::replace(&mut rules.requires_alternating_roles, true);
        }
        let sessions = match form {
            Form::WithoutTool | Form::AlternatingRolesWithoutTool => &mut rules.without_tool,
            Form::Verbatim => &mut rules.verbatim,
            Form::AsMade | Form::AlternatingRoles => return is_new,
        };
        // More sessions than it takes for a rule are not needed.
        let is_new_session = sessions.iter().all(|known| known.as_ref() != session);
        if is_new_session && sessions.len() < SESSIONS_FOR_A_RULE {
            sessions.push(session.cloned());
            is_new |= sessions.len() == 1;
        }
        is_new
    }
}

fn log_rule(ProviderKey { upstream, model, .. }: &ProviderKey, form: Form) {
    match form {
        Form::AsMade => {}
        Form::AlternatingRoles => {
            tracing::info!(upstream, model, "the provider requires alternating roles: messages are merged");
        }
        Form::WithoutTool | Form::AlternatingRolesWithoutTool => {
            tracing::warn!(upstream, model, "the provider rejects the recall tool: it is not offered");
        }
        Form::Verbatim => {
            tracing::warn!(upstream, model, "the provider rejects changed bodies: they are sent unchanged");
        }
    }
}

/// Builds a refused body again in another form, and records it. Returns `None` if the form does not change the body.
pub(crate) async fn reshape(
    shared: &Arc<Shared>,
    conversation: &Arc<ClientConversation>,
    refused: &PreparedBody,
    form: Form,
) -> Option<PreparedBody> {
    let (engine, for_thread) = (Arc::clone(&shared.engine), Arc::clone(conversation));
    let refused_body = refused.clone();
    let work = move || resend(&engine.get(), &for_thread, &refused_body, form.body_form());
    let work = shared.fold_slots.run(conversation.size(), work);
    let resend = tokio::time::timeout(shared.limits.deadline, work).await.ok().and_then(Result::ok).flatten();
    let again = PreparedBody { form, snapshot: None, timings: Vec::new(), ..refused.clone() };
    if form == Form::Verbatim {
        // The received body is sent even if that could not be recorded.
        let outcome = ProxyOutcome::Unchanged(BypassReason::Rejected);
        return Some(PreparedBody { body: None, outcome, has_tool: false, counted: None, ..again });
    }
    let (body, lost_tool) = resend?;
    let body = Some(body).filter(|body| *body != conversation.received);
    Some(PreparedBody { body, has_tool: again.has_tool && !lost_tool, lost_tool, ..again })
}

/// Also returns whether the body lost the recall tool.
fn resend(
    engine: &SessionEngine,
    conversation: &ClientConversation,
    refused: &PreparedBody,
    form: BodyForm,
) -> Option<(Bytes, bool)> {
    let session = refused.session.as_ref()?;
    let refused = RefusedBody {
        before_rules: str::from_utf8(refused.unruled.as_ref()?).ok()?,
        sent: str::from_utf8(refused.body.as_ref()?).ok()?,
        received: str::from_utf8(&conversation.received).ok()?,
        format: conversation.format,
    };
    match engine.resend(session, refused, form) {
        Ok(resend) => resend.map(|resend| (resend.body.into(), resend.edits.rules.without_recall_tool)),
        Err(error) => {
            tracing::warn!(%session, %error, "a request could not be recorded");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn provider(model: &str) -> ProviderKey {
        ProviderKey::new("u", Some(model), Format::Chat)
    }

    fn session(name: &str) -> SessionId {
        SessionId(name.to_owned())
    }

    #[test]
    fn two_sessions_make_a_rule_for_the_provider() {
        let quirks = ProviderQuirks::default();
        let form = |model: &str, name: &str| quirks.form(&provider(model), Some(&session(name)));
        let insert = |name: &str, form: Form| quirks.insert(&provider("m"), Some(&session(name)), form);
        assert!(insert("a", Form::AlternatingRoles));
        assert!(!insert("b", Form::AlternatingRoles), "the rule is known");
        assert_eq!((form("m", "c"), form("n", "c")), (Form::AlternatingRoles, Form::AsMade));
        assert!(insert("a", Form::Verbatim));
        assert_eq!((form("m", "a"), form("m", "c")), (Form::Verbatim, Form::AlternatingRoles));
        assert!(!insert("b", Form::Verbatim));
        assert_eq!((form("m", "c"), form("n", "a")), (Form::Verbatim, Form::AsMade));
    }

    #[test]
    fn a_tool_rejected_in_two_sessions_is_not_offered_again() {
        let quirks = ProviderQuirks::default();
        let form = |name: &str| quirks.form(&provider("m"), Some(&session(name)));
        let insert = |name: &str, form: Form| quirks.insert(&provider("m"), Some(&session(name)), form);
        assert!(insert("a", Form::WithoutTool));
        assert!(!insert("a", Form::WithoutTool), "the rule is known");
        assert_eq!((form("a"), form("b")), (Form::WithoutTool, Form::AsMade));
        assert!(quirks.accepts_tool(&provider("m")));
        assert!(insert("b", Form::AlternatingRolesWithoutTool), "the rule for roles is new");
        let both = Form::AlternatingRolesWithoutTool;
        assert_eq!((form("a"), form("c")), (both, both));
        assert!(!quirks.accepts_tool(&provider("m")) && quirks.accepts_tool(&provider("n")));
    }
}
