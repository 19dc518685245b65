//! A PostgreSQL server for as long as the tests run, in a folder of its own. The engine's and the program's tests have
//! it from here.
//!
//! Without PostgreSQL on the machine the tests that need it say so on stderr, past the test runner, and pass.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use fanfold_store::{OpenMode, Store};

/// A server.
pub(crate) struct Cluster {
    folder: PathBuf,
    programs: PathBuf,
    /// Waits for the end of these tests, however they end, then stops the server and removes its folder.
    _watch: Child,
}

/// A database of its own on the server that all tests share, by its address; none without PostgreSQL.
pub(crate) fn database() -> Option<String> {
    static SHARED: OnceLock<Option<Cluster>> = OnceLock::new();
    SHARED.get_or_init(Cluster::start).as_ref().map(Cluster::database)
}

/// The folder with the server's socket, in an address.
pub(crate) fn folder_of(address: &str) -> String {
    let (_, rest) = address.split_once('@').unwrap();
    rest.split_once('/').unwrap().0.replace("%2F", "/")
}

/// The store of a database.
pub(crate) fn open(address: &str) -> Box<dyn Store> {
    fanfold_store::open(address, OpenMode::Write).unwrap()
}

impl Cluster {
    /// Makes a server and starts it.
    pub(crate) fn start() -> Option<Cluster> {
        let Some(programs) = programs() else {
            let text =
                "\n*** PostgreSQL IS NOT INSTALLED: what a store on a server promises is NOT TESTED ***\n\n";
            std::io::stderr().write_all(text.as_bytes()).unwrap();
            return None;
        };
        let folder = tempfile::tempdir().unwrap().keep();
        if is_root() {
            done(Command::new("chown").arg("postgres:").arg(&folder));
        }
        let mut watch = Command::new("sh");
        let script = "read -r _; \"$1/pg_ctl\" -D \"$2/data\" -m immediate -w stop >\"$2/stop\" 2>&1; \
             [ \"$(id -u)\" = 0 ] && setpriv --reuid=postgres --regid=postgres --clear-groups \
             \"$1/pg_ctl\" -D \"$2/data\" -m immediate -w stop >\"$2/stop\" 2>&1; rm -rf \"$2\"";
        watch.args(["-c", script, "watch"]).arg(&programs).arg(&folder);
        let watch = watch.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let cluster = Cluster { folder, programs, _watch: watch };
        let make = ["-A", "trust", "-U", "postgres", "--no-sync", "-E", "UTF8", "--locale=C.UTF-8", "-D"];
        done(cluster.program("initdb").args(make).arg(cluster.folder.join("data")));
        cluster.run_server();
        Some(cluster)
    }

    /// Starts the server, again or for the first time.
    pub(crate) fn run_server(&self) {
        // `synchronous_commit=off`: a store has to ask for what it needs.
        let options = format!(
            "-k {} -c listen_addresses='' -c fsync=off -c synchronous_commit=off -c full_page_writes=off \
             -c max_connections=200",
            self.folder.display()
        );
        // After a kill the old processes may need a moment to go.
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

    /// Kills the server: all of it at once without a word, or its first process alone.
    pub(crate) fn kill_server(&self, is_orderly: bool) {
        if is_orderly {
            let mut stop = self.program("pg_ctl");
            stop.arg("-D").arg(self.folder.join("data")).args(["-m", "immediate", "-w", "stop"]);
            done(&mut stop);
        } else {
            let file = std::fs::read_to_string(self.folder.join("data/postmaster.pid")).unwrap();
            let pid = file.lines().next().unwrap();
            done(Command::new("kill").args(["-9", pid]));
        }
    }

    /// A new database, by its address.
    pub(crate) fn database(&self) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("t{}", NEXT.fetch_add(1, Ordering::Relaxed));
        done(self.program("createdb").arg("-h").arg(&self.folder).args(["-U", "postgres", &name]));
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

fn done(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output().unwrap();
    output.stdout.trim_ascii() == b"0"
}

/// The folder with the server's programs: on the path, or where Debian keeps them.
fn programs() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    folders.extend(versions.map(|version| version.path().join("bin")));
    let has = |folder: &Path, name: &str| folder.join(name).exists();
    let found = folders.into_iter().find(|folder| has(folder, "initdb") && has(folder, "pg_ctl"))?;
    // Not all of them may be linked to from the path.
    found.join("initdb").canonicalize().ok()?.parent().map(Path::to_owned)
}
