//! Token counters, one per family of models, and the table of models.
