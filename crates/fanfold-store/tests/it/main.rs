//! Integration tests of the stores and of search.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

/// Defines one test per kind of store for each of the given functions.
macro_rules! every_store {
    ($($name:ident),* $(,)?) => {
        mod memory {
            $(#[test] fn $name() { super::$name(&fanfold_store::SqliteStore::in_memory()); })*
        }
        mod sqlite {
            $(#[test] fn $name() {
                let folder = tempfile::tempdir().unwrap();
                super::$name(&fanfold_store::SqliteStore::open(folder.path()).unwrap());
            })*
        }
        mod fallback {
            $(#[test] fn $name() {
                let database = std::sync::Arc::new(fanfold_store::SqliteStore::in_memory());
                super::$name(&fanfold_store::FallbackStore::new(Ok(database)));
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

mod shorthand; //          short functions to write batches and read sessions
mod cluster; //            a temporary PostgreSQL server
mod contract; //           the test suite that every store passes
mod reference_model; //    a simple store to compare stores with
mod model; //              random batches have the same results in every store
mod postgres; //           tests of PostgreSQL only
mod lost_commit; //        connections that break at a commit
mod doctor; //             consistency checks and repairs
mod corrupt_file; //       SQLite files with corrupt pages
mod page_loss; //          every page lost once, cut files, damaged headers
mod sqlite; //             tests of SQLite only
mod fallback; //           sessions in memory while their database fails
mod small_disk; //         a file system that tests fill
mod unwritable_disk; //    full and read-only disks
mod migration; //        stores of earlier schema versions
mod writer_process; //     a program that writes until it is killed
mod crash; //              acknowledged batches survive crashes
mod torn_log; //           truncated and overwritten write-ahead logs
mod concurrent_writers; // many writers on one store
mod search; //             hits and their visibility, in every store
mod search_index; //       lagging and corrupt indexes
mod search_words; //       every word finds its message
mod search_replies; //     the four kinds of reply
mod search_pages; //       paging through results
