//! Notes how a profile's stream windows move, for figures about them: a credit policy around another one.

use std::sync::{Arc, Mutex, PoisonError};

use posthaste_policy::sample::{CreditMoment, WindowView};
use posthaste_policy::{AckRide, Credit, CreditFactory, Description, Profile};
use posthaste_units::{ByteCount, Time};

use crate::peer::CreditMoves;
use crate::result::CreditUpdate;

/// Updates that are kept.
const MOST_UPDATES: usize = 6;
/// Streams whose windows are added up; what more there are is left out.
const MOST_STREAMS: usize = 64;
/// The windows whose time is kept.
const MARKS: [ByteCount; 2] = [ByteCount::new(128 << 10), ByteCount::new(512 << 10)];

/// What the streams of one end have noted.
#[derive(Debug, Clone, Default)]
pub(super) struct CreditLog(Arc<Mutex<Notes>>);

#[derive(Debug, Default)]
struct Notes {
    windows: Vec<ByteCount>,
    updates: Vec<(Time, ByteCount, ByteCount)>,
    reached: [Option<Time>; 2],
}

impl CreditLog {
    /// The profile with stream windows that note their moves here; `profile` itself if it cannot be built again.
    pub(super) fn around(&self, profile: &Profile) -> Profile {
        let logged = Logged { profile: profile.clone(), log: self.clone() };
        let built = profile.to_builder(profile.name()).stream_credit(logged).build();
        built.unwrap_or_else(|_| profile.clone())
    }

    fn with<R>(&self, act: impl FnOnce(&mut Notes) -> R) -> R {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What has been noted.
    pub(super) fn moves(&self) -> CreditMoves {
        self.with(|notes| {
            let seconds = |at: Time| at.since(Time::ZERO).as_secs_f64();
            let update = |(at, windows, advance): &(Time, ByteCount, ByteCount)| CreditUpdate {
                at: seconds(*at),
                windows: windows.get() as f64,
                advance: advance.get() as f64,
            };
            CreditMoves {
                updates: notes.updates.iter().map(update).collect(),
                reached: notes.reached.map(|at| at.map(seconds)),
            }
        })
    }
}

impl Notes {
    fn add(&mut self, place: usize, view: &WindowView, window: ByteCount, advance: ByteCount) {
        self.windows[place] = window;
        for (mark, at) in std::iter::zip(MARKS, &mut self.reached) {
            if window >= mark {
                at.get_or_insert(view.now);
            }
        }
        let together: ByteCount = self.windows.iter().copied().sum();
        let half = view.rtt.unwrap_or_default() / 2;
        let is_room = self.updates.len() < MOST_UPDATES;
        match self.updates.last_mut() {
            Some((at, windows, moved)) if view.now.since(*at) < half => {
                *windows = together;
                *moved += advance;
            }
            _ if is_room => self.updates.push((view.now, together, advance)),
            _ => {}
        }
    }
}

/// Builds [`Noted`] policies.
struct Logged {
    profile: Profile,
    log: CreditLog,
}

impl CreditFactory for Logged {
    fn build(&self) -> Box<dyn Credit> {
        let inner = self.profile.stream_credit();
        Box::new(Noted { inner, place: None, log: self.log.clone() })
    }

    fn describe(&self) -> Description {
        Description::default()
    }
}

/// A stream's window that notes its moves.
#[derive(Debug)]
struct Noted {
    inner: Box<dyn Credit>,
    /// Its place among the windows that are added up, once it was asked.
    place: Option<usize>,
    log: CreditLog,
}

impl Noted {
    /// The place; none when there are too many.
    fn place(&mut self) -> Option<usize> {
        if self.place.is_none() {
            let window = self.inner.window();
            self.place = self.log.with(|notes| {
                let is_room = notes.windows.len() < MOST_STREAMS;
                is_room.then(|| {
                    notes.windows.push(window);
                    notes.windows.len() - 1
                })
            });
        }
        self.place
    }
}

impl Credit for Noted {
    fn initial_window(&self) -> ByteCount {
        self.inner.initial_window()
    }

    fn grant(&mut self, moment: CreditMoment, view: &WindowView) -> Option<ByteCount> {
        let place = self.place();
        let advance = self.inner.grant(moment, view)?;
        if let Some(place) = place {
            let window = self.inner.window();
            self.log.with(|notes| notes.add(place, view, window, advance));
        }
        Some(advance)
    }

    fn window(&self) -> ByteCount {
        self.inner.window()
    }

    fn rides_on_acks(&self) -> Option<AckRide> {
        self.inner.rides_on_acks()
    }
}
