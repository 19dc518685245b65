//! Connection limit: a slow or hostile client cannot shut out the others.
//!
//! ```text
//! idle --headers--> receiving --body--> serving --end of response--> resting --headers--> receiving ...
//! ```
//!
//! When all slots are taken, the connection that has been idle, resting or receiving for longest is closed, in this
//! order. Serving connections stay, unless their peer exceeds its share and the new peer does not. A few extra
//! connections are accepted beyond the limit: a handler serves them at once, or waits for a slot.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::observed_body::{BodyEnd, BodyObserver};

/// Connections accepted beyond the limit.
const EXTRA: usize = 64;
/// A peer may hold 1/PARTS of all connections; loopback is exempt.
const PARTS: usize = 4;

/// Accepts connections up to a limit.
pub(crate) struct ConnectionLimit {
    limit: usize,
    /// Responses in progress.
    slots: Arc<Semaphore>,
    /// Guards the table of connections; held while it is scanned once.
    table: Mutex<ConnectionTable>,
}

#[derive(Default)]
struct ConnectionTable {
    n_accepted: u64,
    open: BTreeMap<u64, Connection>,
}

struct Connection {
    peer: IpAddr,
    has_requested: bool,
    n_receiving: usize,
    n_serving: usize,
    /// When it entered its current phase.
    since: Instant,
    evicted: CancellationToken,
}

/// The phase of a connection. Earlier phases are evicted first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    /// It has sent no request yet.
    Idle,
    /// It is between requests.
    Resting,
    /// A request is being received.
    Receiving,
    /// A response is awaited or being sent.
    Serving,
}

impl Connection {
    fn phase(&self) -> Phase {
        match (self.n_serving, self.n_receiving, self.has_requested) {
            (0, 0, false) => Phase::Idle,
            (0, 0, true) => Phase::Resting,
            (0, _, _) => Phase::Receiving,
            (_, _, _) => Phase::Serving,
        }
    }
}

impl ConnectionLimit {
    pub(crate) fn new(limit: usize) -> Arc<ConnectionLimit> {
        let slots = Arc::new(Semaphore::new(limit));
        Arc::new(ConnectionLimit { limit, slots, table: Mutex::default() })
    }

    /// Accepts a connection, after evicting another if necessary. Returns `None` if none can be evicted.
    pub(crate) fn accept(self: &Arc<ConnectionLimit>, peer: IpAddr) -> Option<ConnectionGuard> {
        let mut table = self.table();
        let is_full = table.open.len() >= self.limit;
        if is_full && !table.evict(Some(peer), self.limit) && table.open.len() >= self.limit + EXTRA {
            return None;
        }
        table.n_accepted += 1;
        let (id, evicted) = (table.n_accepted, CancellationToken::new());
        let connection = Connection {
            peer,
            has_requested: false,
            n_receiving: 0,
            n_serving: 0,
            since: Instant::now(),
            evicted: evicted.clone(),
        };
        table.open.insert(id, connection);
        Some(ConnectionGuard { owner: Arc::clone(self), id, evicted })
    }

    /// Evicts a connection that is not serving, for example because the process is out of file descriptors.
    pub(crate) fn make_room(&self) {
        self.table().evict(None, self.limit);
    }

    fn table(&self) -> MutexGuard<'_, ConnectionTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update(&self, id: u64, update: impl FnOnce(&mut Connection)) {
        if let Some(connection) = self.table().open.get_mut(&id) {
            let before = connection.phase();
            update(connection);
            if connection.phase() != before {
                connection.since = Instant::now();
            }
        }
    }
}

impl ConnectionTable {
    /// Evicts a connection in favour of a new peer. Returns whether there was one to evict.
    fn evict(&mut self, new_peer: Option<IpAddr>, limit: usize) -> bool {
        let share = (limit / PARTS).max(1);
        let n_of = |peer: IpAddr| self.open.values().filter(|connection| connection.peer == peer).count();
        let exceeds_share = |peer: IpAddr| !peer.is_loopback() && n_of(peer) > share;
        let inactive = self.open.iter().filter(|(_, connection)| connection.phase() < Phase::Serving);
        let longest =
            inactive.min_by_key(|(_, connection)| (connection.phase(), connection.since)).map(|(id, _)| *id);
        let victim = longest.or_else(|| {
            let new_peer = new_peer.filter(|new_peer| !exceeds_share(*new_peer))?;
            let mut by_age: Vec<_> =
                self.open.iter().filter(|(_, connection)| connection.peer != new_peer).collect();
            by_age.sort_by_key(|(_, connection)| connection.since);
            // Count the connections of each peer once.
            let mut known = BTreeMap::new();
            let mut exceeds = |peer: IpAddr| *known.entry(peer).or_insert_with(|| exceeds_share(peer));
            by_age.into_iter().find(|(_, connection)| exceeds(connection.peer)).map(|(id, _)| *id)
        });
        let Some(connection) = victim.and_then(|id| self.open.remove(&id)) else { return false };
        connection.evicted.cancel();
        true
    }
}

/// An accepted connection; leaves the table when it is dropped.
pub(crate) struct ConnectionGuard {
    owner: Arc<ConnectionLimit>,
    id: u64,
    evicted: CancellationToken,
}

impl ConnectionGuard {
    /// Waits until the connection is evicted.
    pub(crate) async fn evicted(&self) {
        self.evicted.cancelled().await;
    }

    /// Starts a request on this connection.
    pub(crate) fn start_request(self: &Arc<ConnectionGuard>) -> ActiveRequest {
        self.owner.update(self.id, |connection| {
            connection.has_requested = true;
            connection.n_receiving += 1;
        });
        ActiveRequest { connection: Arc::clone(self), received: OnceLock::new(), slot: OnceLock::new() }
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.owner.table().open.remove(&self.id);
    }
}

/// A request from its headers to the end of its response. The server adds it to the extensions of each request.
pub struct ActiveRequest {
    connection: Arc<ConnectionGuard>,
    received: OnceLock<()>,
    /// Released when the request ends.
    slot: OnceLock<OwnedSemaphorePermit>,
}

impl ActiveRequest {
    /// Marks the request as received in full.
    pub fn mark_received(&self) {
        if self.received.set(()).is_ok() {
            self.connection.owner.update(self.connection.id, |connection| {
                connection.n_receiving -= 1;
                connection.n_serving += 1;
            });
        }
    }

    /// Waits for a slot; the connection limit is also the number of slots. Returns whether one was free in time.
    pub async fn take_slot(&self, timeout: Duration) -> bool {
        let slot = Arc::clone(&self.connection.owner.slots).acquire_owned();
        match tokio::time::timeout(timeout, slot).await {
            Ok(Ok(slot)) => self.slot.set(slot).is_ok(),
            Ok(Err(_)) | Err(_) => false,
        }
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        let was_received = self.received.get().is_some();
        self.connection.owner.update(self.connection.id, |connection| {
            let n = if was_received { &mut connection.n_serving } else { &mut connection.n_receiving };
            *n -= 1;
        });
    }
}

/// A request lasts as long as its response body.
impl BodyObserver for Arc<ActiveRequest> {
    fn on_bytes(&mut self, _bytes: &[u8]) {}

    fn on_end(&mut self, _end: BodyEnd) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCAL: [u8; 4] = [127, 0, 0, 1];
    const ONE: [u8; 4] = [10, 0, 0, 1];
    const OTHER: [u8; 4] = [10, 0, 0, 2];

    fn connect(limit: &Arc<ConnectionLimit>, peer: [u8; 4]) -> Option<Arc<ConnectionGuard>> {
        limit.accept(IpAddr::from(peer)).map(Arc::new)
    }

    fn serving(connection: &Arc<ConnectionGuard>) -> ActiveRequest {
        let request = connection.start_request();
        request.mark_received();
        request
    }

    fn is_evicted(connection: &Arc<ConnectionGuard>) -> bool {
        connection.evicted.is_cancelled()
    }

    #[test]
    fn inactive_connections_are_evicted_in_order_of_phase() {
        let limit = ConnectionLimit::new(4);
        let connections: Vec<_> = (0..4).map(|_| connect(&limit, LOCAL).unwrap()).collect();
        let _serving = serving(&connections[0]);
        let _receiving = connections[1].start_request();
        drop(serving(&connections[2]));
        let evicted = || connections.iter().map(is_evicted).collect::<Vec<_>>();
        let mut late = Vec::new();
        let expected = [
            [false, false, false, true],
            [false, false, true, true],
            [false, true, true, true],
            [false, true, true, true],
        ];
        for expected in expected {
            let connection = connect(&limit, LOCAL).unwrap();
            late.push((serving(&connection), connection));
            assert_eq!(evicted(), expected);
        }
    }

    #[test]
    fn accepts_a_few_connections_beyond_the_limit() {
        let limit = ConnectionLimit::new(2);
        let all: Vec<_> = (0..2 + EXTRA)
            .map(|_| {
                let connection = connect(&limit, LOCAL).unwrap();
                (serving(&connection), connection)
            })
            .collect();
        assert!(connect(&limit, LOCAL).is_none(), "all of them are serving");
        drop(all);
        assert!(connect(&limit, LOCAL).is_some());
        assert!(limit.table().open.is_empty(), "closed connections leave the table");
    }

    #[test]
    fn evicts_a_peer_that_exceeds_its_share() {
        let limit = ConnectionLimit::new(8);
        let all: Vec<_> = (0..8)
            .map(|_| {
                let connection = connect(&limit, ONE).unwrap();
                (serving(&connection), connection)
            })
            .collect();
        let n_evicted = || all.iter().filter(|(_, connection)| is_evicted(connection)).count();
        let extra = connect(&limit, ONE).unwrap();
        assert_eq!(n_evicted(), 0, "a peer does not evict its own connections");
        drop(extra);
        let _other = connect(&limit, OTHER).unwrap();
        assert_eq!((n_evicted(), is_evicted(&all[0].1)), (1, true), "the oldest is evicted for another peer");
    }

    #[tokio::test]
    async fn requests_beyond_the_slots_wait() {
        let limit = ConnectionLimit::new(1);
        let (one, other) = (connect(&limit, LOCAL).unwrap(), connect(&limit, LOCAL).unwrap());
        let (first, second) = (serving(&one), serving(&other));
        let moment = Duration::from_millis(20);
        assert!(first.take_slot(moment).await && !second.take_slot(moment).await);
        drop(first);
        assert!(second.take_slot(moment).await);
    }
}
