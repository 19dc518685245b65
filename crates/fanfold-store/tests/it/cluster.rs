//! A temporary PostgreSQL server in its own folder. The tests of the engine and of the CLI include this file, too.
//!
//! If PostgreSQL is not installed, the tests that need it print a message to stderr, past the test runner, and pass.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use fanfold_store::{OpenMode, Store};

/// A running server.
pub(crate) struct Cluster {
    folder: PathBuf,
    programs: PathBuf,
    /// A shell that waits until the test process ends or is killed, then stops the server and removes its folder.
    _watch: Child,
}

/// Returns the address of a new database on a server that all tests share; `None` without PostgreSQL.
pub(crate) fn database() -> Option<String> {
    static SHARED: OnceLock<Option<Cluster>> = OnceLock::new();
    SHARED.get_or_init(Cluster::start).as_ref().map(Cluster::database)
}

/// Returns the folder of the server's socket in an address.
pub(crate) fn socket_folder(address: &str) -> String {
    let (_, rest) = address.split_once('@').unwrap();
    rest.split_once('/').unwrap().0.replace("%2F", "/")
}

/// Opens the store in a database.
pub(crate) fn open(address: &str) -> Box<dyn Store> {
    fanfold_store::open(address, OpenMode::Write).unwrap()
}

impl Cluster {
    /// Creates a server and starts it; `None` without PostgreSQL.
    pub(crate) fn start() -> Option<Cluster> {
        let Some(programs) = programs() else {
            let text = "\n*** PostgreSQL IS NOT INSTALLED: the PostgreSQL store is NOT TESTED ***\n\n";
            std::io::stderr().write_all(text.as_bytes()).unwrap();
            return None;
        };
        let folder = tempfile::tempdir().unwrap().keep();
        if is_root() {
            run(Command::new("chown").arg("postgres:").arg(&folder));
        }
        let mut watch = Command::new("sh");
        let script = "read -r _; \"$1/pg_ctl\" -D \"$2/data\" -m immediate -w stop >\"$2/stop\" 2>&1; \
             [ \"$(id -u)\" = 0 ] && setpriv --reuid=postgres --regid=postgres --clear-groups \
             \"$1/pg_ctl\" -D \"$2/data\" -m immediate -w stop >\"$2/stop\" 2>&1; rm -rf \"$2\"";
        watch.args(["-c", script, "watch"]).arg(&programs).arg(&folder);
        let watch = watch.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let cluster = Cluster { folder, programs, _watch: watch };
        let make = ["-A", "trust", "-U", "postgres", "--no-sync", "-E", "UTF8", "--locale=C.UTF-8", "-D"];
        run(cluster.program("initdb").args(make).arg(cluster.folder.join("data")));
        cluster.run_server();
        Some(cluster)
    }

    /// Starts the server.
    pub(crate) fn run_server(&self) {
        // With `synchronous_commit=off`, the tests verify that the store itself requests durable commits.
        let options = format!(
            "-k {} -c listen_addresses='' -c fsync=off -c synchronous_commit=off -c full_page_writes=off \
             -c max_connections=200",
            self.folder.display()
        );
        // After a kill the old processes may need a moment to end.
        for _ in 0..50 {
            let mut start = self.program("pg_ctl");
            start.arg("-D").arg(self.folder.join("data")).args(["-w", "-t", "60", "-l"]);
            start.arg(self.folder.join("log")).args(["-o", &options, "start"]);
            if start.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        panic!("{}", std::fs::read_to_string(self.folder.join("log")).unwrap_or_default());
    }

    /// Stops the server immediately with `pg_ctl`, or kills only its main process.
    pub(crate) fn kill_server(&self, with_pg_ctl: bool) {
        if with_pg_ctl {
            let mut stop = self.program("pg_ctl");
            stop.arg("-D").arg(self.folder.join("data")).args(["-m", "immediate", "-w", "stop"]);
            run(&mut stop);
        } else {
            let file = std::fs::read_to_string(self.folder.join("data/postmaster.pid")).unwrap();
            let pid = file.lines().next().unwrap();
            run(Command::new("kill").args(["-9", pid]));
        }
    }

    /// Creates a database and returns its address.
    pub(crate) fn database(&self) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("t{}", NEXT.fetch_add(1, Ordering::Relaxed));
        run(self.program("createdb").arg("-h").arg(&self.folder).args(["-U", "postgres", &name]));
        self.address(&name)
    }

    fn address(&self, database: &str) -> String {
        let folder = self.folder.display().to_string().replace('/', "%2F");
        format!("postgres://postgres@{folder}/{database}")
    }

    fn program(&self, name: &str) -> Command {
        let path = self.programs.join(name);
        let mut command = if is_root() {
            // The server refuses to run as root.
            let mut command = Command::new("setpriv");
            command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]).arg(path);
            command
        } else {
            Command::new(path)
        };
        command.current_dir(&self.folder);
        command
    }
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output().unwrap();
    output.stdout.trim_ascii() == b"0"
}

/// Returns the folder of the server's programs: on the path, or Debian's folder.
fn programs() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    folders.extend(versions.map(|version| version.path().join("bin")));
    let has = |folder: &Path, name: &str| folder.join(name).exists();
    let found = folders.into_iter().find(|folder| has(folder, "initdb") && has(folder, "pg_ctl"))?;
    // Follow the link, because a folder on the path may have only some of the programs.
    found.join("initdb").canonicalize().ok()?.parent().map(Path::to_owned)
}
