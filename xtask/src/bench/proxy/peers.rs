//! Other proxies, installed from their Python packages below `target` and started as documented.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

use super::{Subject, free_port};
use crate::bench::run_command;

const LITELLM: &str = "litellm[proxy]";
const HEADROOM: &str = "headroom-ai[proxy]==0.42.0";

/// Each proxy, or its name and the reason why it cannot be measured.
pub(super) fn all(root: &Path, work: &Path) -> Vec<Result<Subject, (String, String)>> {
    let peers = root.join("target/bench/peers");
    let with_name = |name: &str, subject: anyhow::Result<Subject>| {
        subject.map_err(|error| (name.to_owned(), format!("{error:#}")))
    };
    vec![with_name("LiteLLM", litellm(&peers, work)), with_name("headroom", headroom(&peers, work))]
}

/// Installs a package into an environment of its own, once.
fn installed(peers: &Path, name: &str, package: &str) -> anyhow::Result<PathBuf> {
    let venv = peers.join(name);
    let ready = venv.join("installed");
    if !ready.exists() {
        run_command(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
        let python = venv.join("bin/python");
        run_command(Command::new(&python).args(["-m", "pip", "install", "--quiet", package]))
            .with_context(|| format!("{package} did not install"))?;
        fs::write(&ready, package)?;
    }
    Ok(venv.join("bin"))
}

/// The version of an installed package.
fn version(bin: &Path, package: &str) -> anyhow::Result<String> {
    let script = format!("import importlib.metadata as m; print(m.version('{package}'))");
    Ok(run_command(Command::new(bin.join("python")).args(["-c", &script]))?.trim().to_owned())
}

fn litellm(peers: &Path, work: &Path) -> anyhow::Result<Subject> {
    let bin = installed(peers, "litellm", LITELLM)?;
    let (port, upstream_port) = (free_port()?, free_port()?);
    let config = work.join("litellm.yaml");
    let model = "claude-sonnet-4-5";
    let text = format!(
        "model_list:\n  - model_name: {model}\n    litellm_params:\n      model: anthropic/{model}\n      \
         api_base: http://127.0.0.1:{upstream_port}\n      api_key: dummy\nlitellm_settings:\n  telemetry: false\n"
    );
    fs::write(&config, text)?;
    let arguments =
        ["--config", &config.display().to_string(), "--host", "127.0.0.1", "--port", &port.to_string()];
    Ok(Subject {
        name: format!("LiteLLM {}", version(&bin, "litellm")?),
        program: bin.join("litellm"),
        arguments: arguments.map(str::to_owned).into(),
        environment: vec![
            home(work, "litellm")?,
            ("LITELLM_LOG".to_owned(), "ERROR".to_owned()),
            // Without this setting LiteLLM requires a key of its own.
            ("LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY".to_owned(), "true".to_owned()),
        ],
        port,
        upstream_port,
    })
}

fn headroom(peers: &Path, work: &Path) -> anyhow::Result<Subject> {
    let bin = installed(peers, "headroom", HEADROOM)?;
    let (port, upstream_port) = (free_port()?, free_port()?);
    let upstream = format!("http://127.0.0.1:{upstream_port}");
    // Lift the limit of sixty requests per minute, and skip the prose model, which would be downloaded.
    let arguments = [
        "proxy",
        "--host",
        "127.0.0.1",
        "--no-rate-limit",
        "--disable-kompress",
        "--no-http2",
        "--anthropic-api-url",
    ];
    let mut arguments: Vec<String> = arguments.map(str::to_owned).into();
    arguments.extend([upstream, "--port".to_owned(), port.to_string()]);
    Ok(Subject {
        name: format!("headroom {}", version(&bin, "headroom-ai")?),
        program: bin.join("headroom"),
        arguments,
        environment: vec![home(work, "headroom")?, ("HEADROOM_TELEMETRY".to_owned(), "off".to_owned())],
        port,
        upstream_port,
    })
}

/// A separate home directory, so that no user files are read or written.
fn home(work: &Path, name: &str) -> anyhow::Result<(String, String)> {
    let home = work.join(format!("home-{name}"));
    fs::create_dir_all(&home)?;
    Ok(("HOME".to_owned(), home.display().to_string()))
}
