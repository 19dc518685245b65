//! A store with a folded session.

use fanfold_testkit::handles_in;
use std::path::PathBuf;

use crate::sandbox::{Sandbox, body, long_chat};

/// A sandbox with a store.
pub(crate) struct StoredSession {
    pub(crate) sandbox: Sandbox,
    /// Handles in the view that was sent, in order.
    pub(crate) handles: Vec<String>,
}

/// The first line of the first tool result in the long chat.
pub(crate) const FIRST_LINE: &str = "def take_0_0(rows):";

impl StoredSession {
    /// A store with the session `night`, which was folded.
    pub(crate) fn new() -> StoredSession {
        let sandbox = Sandbox::new();
        sandbox.write("chat.json", &body(&long_chat(30)));
        let ran = sandbox.run("fold chat.json --session night --window 8k --store s.db --explain");
        assert_eq!(ran.code, 0, "{}", ran.err);
        let handles = handles_in(&ran.out);
        assert!(!handles.is_empty(), "nothing was folded: {}", ran.err);
        StoredSession { sandbox, handles }
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.sandbox.path("s.db")
    }

    /// The original of a handle, from the command line.
    pub(crate) fn original(&self, handle: &str) -> String {
        let ran = self.sandbox.run(&format!("recall --session night --store s.db {handle}"));
        assert_eq!(ran.code, 0, "{}", ran.err);
        ran.out
    }
}
