//! The paths of a run: one, or two of which the first can be left.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Write};
use std::time::{Duration, SystemTime};

use posthaste_emulator::{DeviceKind, Tunnel, TunnelConfig, TunnelReport, Validity};

use super::directions::{self, Directions};
use crate::args::{Device, Emulate};
use crate::exit::Failure;
use crate::printer;

/// How often it is looked whether a first packet has come.
const LOOK: Duration = Duration::from_millis(10);

/// The first path draws from the run's seed, the second from the next.
const SECOND_SEED: u64 = 1;

/// All that leads into COMMAND's namespace.
pub(super) struct Paths {
    pub(super) first: Tunnel,
    pub(super) summary: String,
    second: Option<(String, Tunnel)>,
    leave_after: Option<Duration>,
    /// When the first path was taken down, in seconds since 1970.
    left_at: Cell<Option<f64>>,
}

/// What all of them have counted at the end.
pub(super) struct Counted {
    pub(super) first: TunnelReport,
    pub(super) summary: String,
    pub(super) device: DeviceKind,
    pub(super) second: Option<(String, TunnelReport)>,
    pub(super) left_at: Option<f64>,
}

impl Paths {
    /// Checks what is asked for: nothing is made yet.
    pub(super) fn plan(args: &Emulate) -> Result<(Directions, Option<Directions>), Failure> {
        let second = args.and.as_deref().map(directions::of_path).transpose()?;
        Ok((Directions::new(args)?, second))
    }

    pub(super) fn start(
        args: &Emulate,
        (first, second): (Directions, Option<Directions>),
        log: Option<File>,
    ) -> Result<Self, Failure> {
        let config = |directions: &Directions, seed| TunnelConfig {
            down: directions.down.clone(),
            up: directions.up.clone(),
            seed,
            device: args.device.map(DeviceKind::from),
        };
        let log = log.map(|file| Box::new(file) as Box<dyn Write + Send>);
        let tunnel = Tunnel::start(config(&first, args.seed), log)?;
        let second = second
            .map(|second| {
                let beside = tunnel.beside(config(&second, args.seed.wrapping_add(SECOND_SEED)))?;
                Ok::<_, Failure>((second.summary, beside))
            })
            .transpose()?;
        Ok(Self {
            first: tunnel,
            summary: first.summary,
            second,
            leave_after: args.leave_after,
            left_at: Cell::new(None),
        })
    }

    /// What is in use, and where it leads.
    pub(super) fn describe(&self) -> String {
        let second = self.second.as_ref().map_or(String::new(), |(path, _)| format!("; second path {path}"));
        let (first, device) = (&self.first, self.first.device());
        format!("{}, to {} by {device}{second}", self.summary, first.far_address())
    }

    /// Leaves the first path when it is time for that; waits for ever if that is not asked for.
    pub(super) async fn leave(&self) {
        let Some(after) = self.leave_after else { return std::future::pending().await };
        while self.first.report().is_ok_and(|report| report.down.path.delivered == 0) {
            tokio::time::sleep(LOOK).await;
        }
        tokio::time::sleep(after).await;
        if let Err(error) = self.first.take_down() {
            return printer::error(format_args!("the first path stays: {error}"));
        }
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        self.left_at.set(since.ok().map(|since| since.as_secs_f64()));
    }

    /// Counts of the path in use.
    pub(super) fn report(&self) -> io::Result<TunnelReport> {
        match &self.second {
            Some((_, second)) if self.left_at.get().is_some() => second.report(),
            _ => self.first.report(),
        }
    }

    /// Ends them.
    pub(super) fn finish(self) -> io::Result<Counted> {
        let second =
            self.second.map(|(path, tunnel)| Ok::<_, io::Error>((path, tunnel.finish()?))).transpose()?;
        Ok(Counted {
            device: self.first.device(),
            first: self.first.finish()?,
            summary: self.summary,
            second,
            left_at: self.left_at.get(),
        })
    }
}

impl From<Device> for DeviceKind {
    fn from(device: Device) -> Self {
        match device {
            Device::Tun => Self::Tun,
            Device::Veth => Self::Veth,
        }
    }
}

impl Counted {
    pub(super) fn validity(&self) -> Validity {
        let validity = Validity::of(&self.first);
        match &self.second {
            Some((_, second)) => validity.and_second(second),
            None => validity,
        }
    }
}
