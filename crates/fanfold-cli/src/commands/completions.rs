//! `fanfold completions`: scripts for shells.

use clap::CommandFactory as _;
use clap_complete::{Shell, generate};

use crate::flags::Cli;
use crate::terminal;

pub(crate) fn run(shell: Shell) -> anyhow::Result<()> {
    let mut script = Vec::new();
    generate(shell, &mut Cli::command(), "fanfold", &mut script);
    terminal::data(&String::from_utf8_lossy(&script))
}
