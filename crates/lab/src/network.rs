//! From a description of a network to its links and routes.

use posthaste_path::{ConfigError, PathSpec};
use posthaste_units::Rate;

use crate::spec::NetworkSpec;
use crate::world::World;

/// The links that every flow passes, and how to add those that a flow has for itself.
pub(crate) struct Network {
    /// Links in the order in which a client's packets pass them, after its access link.
    up: Vec<usize>,
    /// Links in the order in which a server's packets pass them, before the access link.
    down: Vec<usize>,
    access: Option<PathSpec>,
}

/// One flow's routes: links in the order of passing.
pub(crate) struct Route {
    pub(crate) up: Vec<usize>,
    pub(crate) down: Vec<usize>,
}

impl Network {
    /// Adds the shared links to `world`.
    ///
    /// # Errors
    /// If a link's configuration is out of range.
    pub(crate) fn build(spec: &NetworkSpec, world: &mut World) -> Result<Self, ConfigError> {
        let mut network = Self { up: Vec::new(), down: Vec::new(), access: spec.access().cloned() };
        for (name, path) in spec.shared_links() {
            let (up, down) = add_both(world, &name, path)?;
            network.up.push(up);
            network.down.insert(0, down);
        }
        Ok(network)
    }

    /// The routes of one more flow, with an access link of its own where the network has them.
    ///
    /// # Errors
    /// If the access link's configuration is out of range.
    pub(crate) fn route(&self, flow: usize, world: &mut World) -> Result<Route, ConfigError> {
        let mut route = Route { up: self.up.clone(), down: self.down.clone() };
        if let Some(access) = &self.access {
            let (up, down) = add_both(world, &format!("access {flow}"), access)?;
            route.up.insert(0, up);
            route.down.push(down);
        }
        Ok(route)
    }
}

impl Route {
    /// A route of one link that is nobody else's.
    ///
    /// # Errors
    /// If the link's configuration is out of range.
    pub(crate) fn alone(name: &str, path: &PathSpec, world: &mut World) -> Result<Self, ConfigError> {
        let (up, down) = add_both(world, name, path)?;
        Ok(Self { up: vec![up], down: vec![down] })
    }
}

fn add_both(world: &mut World, name: &str, path: &PathSpec) -> Result<(usize, usize), ConfigError> {
    let up = world.add_link(format!("{name} up"), path.up())?;
    let down = world.add_link(format!("{name} down"), path.down())?;
    Ok((up, down))
}

impl NetworkSpec {
    /// The links that all flows share, with their names, the client's first.
    fn shared_links(&self) -> Vec<(String, &PathSpec)> {
        match self {
            Self::Simple { path } => vec![("path".to_owned(), path)],
            Self::Dumbbell { path, .. } => vec![("bottleneck".to_owned(), path)],
            Self::RadioBackhaul { radio, backhaul } => {
                vec![("radio".to_owned(), radio), ("backhaul".to_owned(), backhaul)]
            }
            Self::Chain { links } => {
                links.iter().enumerate().map(|(index, link)| (format!("link {index}"), link)).collect()
            }
        }
    }

    fn access(&self) -> Option<&PathSpec> {
        match self {
            Self::Dumbbell { access, .. } => access.as_ref(),
            _ => None,
        }
    }

    /// Every link that one flow passes.
    pub(crate) fn links_of_a_flow(&self) -> impl Iterator<Item = &PathSpec> {
        self.shared_links().into_iter().map(|(_, path)| path).chain(self.access())
    }

    /// The network as a run with this seed meets it: where the recordings of its links begin is settled. The first link is
    /// that of the emulator with this seed; others begin elsewhere.
    #[must_use]
    pub(crate) fn started(&self, seed: u64) -> Self {
        let at = |path: &PathSpec, link: u64| path.started(seed ^ (link << 32));
        match self {
            Self::Simple { path } => Self::Simple { path: at(path, 0) },
            Self::Dumbbell { path, access } => {
                Self::Dumbbell { path: at(path, 0), access: access.as_ref().map(|access| at(access, 1)) }
            }
            Self::RadioBackhaul { radio, backhaul } => {
                Self::RadioBackhaul { radio: at(radio, 0), backhaul: at(backhaul, 1) }
            }
            Self::Chain { links } => {
                Self::Chain { links: links.iter().zip(0..).map(|(path, link)| at(path, link)).collect() }
            }
        }
    }

    /// True if runs with different seeds begin at different places of a recording.
    pub(crate) fn begins_anywhere(&self) -> bool {
        self.links_of_a_flow().any(PathSpec::begins_anywhere)
    }

    /// The slowest link's mean rate from server to client; `None` if all are infinitely fast.
    pub(crate) fn down_rate(&self) -> Option<Rate> {
        self.links_of_a_flow().filter_map(posthaste_path::PathSpec::down_rate).min()
    }
}
