//! x
use crate::follow::Followed;
pub(crate) fn before_and_after(_: &Followed, _: &fanfold_core::View, _: usize) -> String {
    String::new()
}
