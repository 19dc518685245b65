//! Who is let in, and who goes when it is full: a slow or hostile client can't shut out the others.
//!
//! ```text
//! greeting --headers--> sending --body--> served --answer's end--> resting --headers--> sending ...
//! ```
//!
//! When every place is taken, whoever has been greeting, resting or sending for longest goes, in this order. Who is
//! served stays, unless its peer has more than its share and the newcomer's has not. A few more are let in than there
//! are places: our own routes answer them, and all else waits a moment for a place.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::watched_body::{End, Watch};

/// So many are let in beyond the places that there are.
const ASIDE: usize = 64;
/// A peer has its share when it has one of so many parts of all places. This machine has no share: all may be its.
const PARTS: usize = 4;

/// Lets clients in.
pub(crate) struct Door {
    most: usize,
    /// Answers that are under way at once.
    places: Arc<Semaphore>,
    /// Guards who is here; held for a look at each of them at most.
    guests: Mutex<Guests>,
}

#[derive(Default)]
struct Guests {
    n_ever: u64,
    here: BTreeMap<u64, Guest>,
}

/// A connection that was let in.
struct Guest {
    peer: IpAddr,
    has_asked: bool,
    n_sending: usize,
    n_served: usize,
    /// Since when it does what it does.
    since: Instant,
    /// Told when it must go.
    goes: CancellationToken,
}

/// What a guest does. Whoever is named first goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Doing {
    /// It has not asked for anything yet.
    Greeting,
    /// It may ask for something more.
    Resting,
    /// It sends what it asks.
    Sending,
    /// It waits for an answer, or gets it.
    Served,
}

impl Guest {
    fn doing(&self) -> Doing {
        match (self.n_served, self.n_sending, self.has_asked) {
            (0, 0, false) => Doing::Greeting,
            (0, 0, true) => Doing::Resting,
            (0, _, _) => Doing::Sending,
            (_, _, _) => Doing::Served,
        }
    }
}

impl Door {
    /// A door with so many places behind it.
    pub(crate) fn new(most: usize) -> Arc<Door> {
        let places = Arc::new(Semaphore::new(most));
        Arc::new(Door { most, places, guests: Mutex::default() })
    }

    /// Lets a connection in, or says that it can't be: then nobody is here who could go for it.
    pub(crate) fn let_in(self: &Arc<Door>, peer: IpAddr) -> Option<Seat> {
        let mut guests = self.guests();
        let is_full = guests.here.len() >= self.most;
        if is_full && !guests.make_room(Some(peer), self.most) && guests.here.len() >= self.most + ASIDE {
            return None;
        }
        guests.n_ever += 1;
        let (id, goes) = (guests.n_ever, CancellationToken::new());
        let guest = Guest {
            peer,
            has_asked: false,
            n_sending: 0,
            n_served: 0,
            since: Instant::now(),
            goes: goes.clone(),
        };
        guests.here.insert(id, guest);
        Some(Seat { door: Arc::clone(self), id, goes })
    }

    /// Lets somebody go who is not served: there is no room for a newcomer, for lack of files say.
    pub(crate) fn make_room(&self) {
        self.guests().make_room(None, self.most);
    }

    fn guests(&self) -> MutexGuard<'_, Guests> {
        self.guests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what a guest does.
    fn change(&self, id: u64, change: impl FnOnce(&mut Guest)) {
        if let Some(guest) = self.guests().here.get_mut(&id) {
            let before = guest.doing();
            change(guest);
            if guest.doing() != before {
                guest.since = Instant::now();
            }
        }
    }
}

impl Guests {
    /// Lets one go, and says whether there was one.
    fn make_room(&mut self, newcomer: Option<IpAddr>, most: usize) -> bool {
        let share = (most / PARTS).max(1);
        let n_of = |peer: IpAddr| self.here.values().filter(|guest| guest.peer == peer).count();
        let has_more = |peer: IpAddr| !peer.is_loopback() && n_of(peer) > share;
        let idle = self.here.iter().filter(|(_, guest)| guest.doing() < Doing::Served);
        let longest = idle.min_by_key(|(_, guest)| (guest.doing(), guest.since)).map(|(id, _)| *id);
        let goes = longest.or_else(|| {
            let newcomer = newcomer.filter(|newcomer| !has_more(*newcomer))?;
            let mut by_age: Vec<_> = self.here.iter().filter(|(_, guest)| guest.peer != newcomer).collect();
            by_age.sort_by_key(|(_, guest)| guest.since);
            // Whoever has most of all is asked for once, not for each of its guests.
            let mut known = BTreeMap::new();
            let mut is_asked = |peer: IpAddr| *known.entry(peer).or_insert_with(|| has_more(peer));
            by_age.into_iter().find(|(_, guest)| is_asked(guest.peer)).map(|(id, _)| *id)
        });
        let Some(guest) = goes.and_then(|id| self.here.remove(&id)) else { return false };
        guest.goes.cancel();
        true
    }
}

/// A connection's place; free again when it is dropped.
pub(crate) struct Seat {
    door: Arc<Door>,
    id: u64,
    goes: CancellationToken,
}

impl Seat {
    /// Waits until the connection must go.
    pub(crate) async fn goes(&self) {
        self.goes.cancelled().await;
    }

    /// A request of it begins.
    pub(crate) fn asks(self: &Arc<Seat>) -> Visit {
        self.door.change(self.id, |guest| {
            guest.has_asked = true;
            guest.n_sending += 1;
        });
        Visit { seat: Arc::clone(self), heard: OnceLock::new(), place: OnceLock::new() }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.door.guests().here.remove(&self.id);
    }
}

/// A request from its headers to the end of its answer.
pub(crate) struct Visit {
    seat: Arc<Seat>,
    heard: OnceLock<()>,
    /// Given back at the end.
    place: OnceLock<OwnedSemaphorePermit>,
}

impl Visit {
    /// All of it has come.
    pub(crate) fn is_heard(&self) {
        if self.heard.set(()).is_ok() {
            self.seat.door.change(self.seat.id, |guest| {
                guest.n_sending -= 1;
                guest.n_served += 1;
            });
        }
    }

    /// Waits for a place, for so long at most, and says whether there was one.
    pub(crate) async fn has_place(&self, most: Duration) -> bool {
        let place = Arc::clone(&self.seat.door.places).acquire_owned();
        match tokio::time::timeout(most, place).await {
            Ok(Ok(place)) => self.place.set(place).is_ok(),
            Ok(Err(_)) | Err(_) => false,
        }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        let was_heard = self.heard.get().is_some();
        self.seat.door.change(self.seat.id, |guest| match was_heard {
            true => guest.n_served -= 1,
            false => guest.n_sending -= 1,
        });
    }
}

/// A visit ends with its answer.
impl Watch for Arc<Visit> {
    fn saw(&mut self, _bytes: &[u8]) {}

    fn ended(&mut self, _end: End) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: [u8; 4] = [127, 0, 0, 1];
    const ONE: [u8; 4] = [10, 0, 0, 1];
    const OTHER: [u8; 4] = [10, 0, 0, 2];

    fn enter(door: &Arc<Door>, peer: [u8; 4]) -> Option<Arc<Seat>> {
        door.let_in(IpAddr::from(peer)).map(Arc::new)
    }

    fn served(seat: &Arc<Seat>) -> Visit {
        let visit = seat.asks();
        visit.is_heard();
        visit
    }

    fn must_go(seat: &Arc<Seat>) -> bool {
        seat.goes.is_cancelled()
    }

    #[test]
    fn who_does_nothing_goes_first_and_who_is_served_stays() {
        let door = Door::new(4);
        let seats: Vec<_> = (0..4).map(|_| enter(&door, HERE).unwrap()).collect();
        let _served = served(&seats[0]);
        let _sending = seats[1].asks();
        drop(served(&seats[2]));
        let who_went = || seats.iter().map(must_go).collect::<Vec<_>>();
        let mut late = Vec::new();
        let expected = [
            [false, false, false, true],
            [false, false, true, true],
            [false, true, true, true],
            [false, true, true, true],
        ];
        for expected in expected {
            let newcomer = enter(&door, HERE).unwrap();
            late.push((served(&newcomer), newcomer));
            assert_eq!(who_went(), expected);
        }
    }

    #[test]
    fn a_few_are_let_in_beyond_it_and_then_nobody() {
        let door = Door::new(2);
        let all: Vec<_> = (0..2 + ASIDE)
            .map(|_| {
                let seat = enter(&door, HERE).unwrap();
                (served(&seat), seat)
            })
            .collect();
        assert!(enter(&door, HERE).is_none(), "all are served");
        drop(all);
        assert!(enter(&door, HERE).is_some());
        assert!(door.guests().here.is_empty(), "nobody is left behind");
    }

    #[test]
    fn a_peer_with_more_than_its_share_makes_room_for_others() {
        let door = Door::new(8);
        let all: Vec<_> = (0..8)
            .map(|_| {
                let seat = enter(&door, ONE).unwrap();
                (served(&seat), seat)
            })
            .collect();
        let n_gone = || all.iter().filter(|(_, seat)| must_go(seat)).count();
        let aside = enter(&door, ONE).unwrap();
        assert_eq!(n_gone(), 0, "not for itself");
        drop(aside);
        let _other = enter(&door, OTHER).unwrap();
        assert_eq!((n_gone(), must_go(&all[0].1)), (1, true), "its oldest goes for another");
    }

    #[tokio::test]
    async fn more_answers_than_places_wait() {
        let door = Door::new(1);
        let (one, other) = (enter(&door, HERE).unwrap(), enter(&door, HERE).unwrap());
        let (first, second) = (served(&one), served(&other));
        let moment = Duration::from_millis(20);
        assert!(first.has_place(moment).await && !second.has_place(moment).await);
        drop(first);
        assert!(second.has_place(moment).await);
    }
}
