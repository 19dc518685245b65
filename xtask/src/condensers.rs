//! Savings and kept content of condensers on recorded conversations, as a table in the guide.

use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

use crate::{guide, page};

const BEGIN: &str = "<!-- begin: cargo xtask condensers --write -->";

/// Measures and prints the table.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let root = crate::tidy::root();
    let mut cargo = Command::new("cargo");
    cargo.current_dir(&root).args(["bench", "--quiet", "-p", "fanfold-testkit", "--bench", "condensers"]);
    let output = cargo.stderr(Stdio::inherit()).output().context("cargo cannot be started")?;
    ensure!(output.status.success(), "the measurement failed\n\nhint: its output is above");
    let output = String::from_utf8_lossy(&output.stdout);
    let rows: Vec<&str> = output.lines().filter(|line| line.contains('\t')).collect();
    if rows.is_empty() {
        // The recorded conversations are missing; the output above names the expected folder.
        return Ok(());
    }
    let table = table(&rows)?;
    if arguments.iter().any(|argument| argument == "--write") {
        page::write_table(&root.join(guide::CONDENSERS), BEGIN, &table)?;
    }
    page::print(&table);
    Ok(())
}

fn table(rows: &[&str]) -> anyhow::Result<String> {
    let mut table = String::from(
        "| what it is | texts | tokens | condensed | kept | errors there | paths there | ids there |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for row in rows {
        let (name, figures) = row.split_once('\t').context("a row lacks a name")?;
        let figures: Vec<f64> = figures.split('\t').map(str::parse).collect::<Result<_, _>>()?;
        let [n, before, after, errors, errors_kept, paths, paths_kept, ids, ids_kept] = figures[..] else {
            anyhow::bail!("{row} does not have nine figures");
        };
        let share = |kept: f64, all: f64| match all as u64 {
            0 => "–".to_owned(),
            n => format!("{:.0} % of {n}", 100.0 * kept / all),
        };
        table.push_str(&format!(
            "| {} | {n} | {before} | {after} | {:.0} % | {} | {} | {} |\n",
            link(name),
            100.0 * after / before,
            share(errors_kept, errors),
            share(paths_kept, paths),
            share(ids_kept, ids),
        ));
    }
    Ok(table)
}

/// A link to the section of a kind.
fn link(name: &str) -> String {
    match name {
        // Agent text is mostly prose.
        "said" => "what agents said ([prose](#prose), most of it)".to_owned(),
        name => format!("[{name}](#{name})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_shares() {
        let table =
            table(&["json\t2\t100\t25\t0\t0\t4\t1\t10\t10"]).unwrap_or_else(|error| panic!("{error:#}"));
        let row = table.lines().last().unwrap_or_default();
        assert_eq!(row, "| [json](#json) | 2 | 100 | 25 | 25 % | – | 25 % of 4 | 100 % of 10 |");
    }
}
