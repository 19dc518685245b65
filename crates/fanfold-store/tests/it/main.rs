//! What every store promises.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

/// A test of the same name for each store, from a function of a store.
macro_rules! every_store {
    ($($name:ident),* $(,)?) => {
        mod memory {
            $(#[test] fn $name() { super::$name(&fanfold_store::MemoryStore::default()); })*
        }
        mod sqlite {
            $(#[test] fn $name() {
                let folder = tempfile::tempdir().unwrap();
                super::$name(&fanfold_store::SqliteStore::open(folder.path()).unwrap());
            })*
        }
        mod postgres {
            $(#[test] fn $name() {
                let Some(database) = crate::cluster::database() else { return };
                super::$name(&*crate::cluster::open(&database));
            })*
        }
    };
}

mod words; //         short ways to write a batch
mod cluster; //       a PostgreSQL server for as long as the tests run
mod contract; //      one suite that every store passes
mod model; //         random batches give the same answers in every store
mod postgres; //      what only a server can do wrong
mod cut; //           a connection that is cut at the commit
mod doctor; //        what a store finds out about itself
mod broken; //        files with a page of rubbish
mod sqlite; //        what only a file can do wrong
mod scribe; //        a program that writes until it is killed
mod crash; //         what was acknowledged is there after a kill
mod torn; //          a log whose end was torn off or overwritten
mod crowd; //         many writers on one store
mod search; //        what every store finds, and what nobody sees
mod search_index; //  an index that lags behind, or is broken
mod search_words; //  every word finds its message
mod search_shapes; // the four answers
mod search_pages; //  page behind page
