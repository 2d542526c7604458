//! Settings of servers in earlier connections, on which early data rely (RFC 9114 section 7.2.4.2).

use std::collections::BTreeMap;
use std::sync::Mutex;

use posthaste_endpoint::EarlyData;
use posthaste_http3::{EarlierSettings, Error, Settings};

use super::lock;
use crate::uri::Origin;

/// Origins whose settings and addresses are kept; early data for further ones rely on nothing.
pub(super) const MAX_ORIGINS: usize = 1024;

/// What servers have said of themselves so far.
#[derive(Debug, Default)]
pub(super) struct Earlier(Mutex<BTreeMap<Origin, EarlierSettings>>);

impl Earlier {
    /// The settings of a new connection have come; `early` tells what became of its early data.
    ///
    /// # Errors
    /// The server has accepted early data which relied on other settings.
    pub(super) fn on_settings(
        &self,
        origin: &Origin,
        settings: Settings,
        early: Option<EarlyData>,
    ) -> Result<(), Error> {
        let mut earlier = lock(&self.0);
        let is_full = earlier.len() >= MAX_ORIGINS;
        match earlier.get_mut(origin) {
            Some(known) => {
                if early == Some(EarlyData::Accepted) {
                    known.check(&settings)?;
                }
                known.add(settings);
            }
            None if is_full => {}
            None => {
                earlier.insert(origin.clone(), EarlierSettings::new(settings));
            }
        }
        Ok(())
    }
}
