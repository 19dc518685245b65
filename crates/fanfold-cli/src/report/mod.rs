//! Reports on folds: receipts as text and as JSON, sizes as charts.

pub(crate) mod receipt_text; // receipts and notices as text
pub(crate) mod receipt_json; // receipts, notices and errors as JSON
pub(crate) mod size_chart; //   sizes as bars
