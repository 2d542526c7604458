//! Which answer a path gets.

use std::sync::Arc;

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use percent::resolved;
use posthaste_content_coding::Compression;

use crate::actions::Action;

mod percent;

/// The answers of one site.
#[derive(Debug)]
pub(crate) struct Routes(Vec<Arc<Route>>);

/// What is answered below a path.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) path: String,
    pub(crate) action: Action,
    pub(crate) fields: Fields,
    pub(crate) compression: Compression,
    /// Of a 103 for those that ask for a page.
    pub(crate) hints: Option<HeaderMap>,
}

/// A path that this server and the one behind it could take for different ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ambiguous;

impl Routes {
    pub(crate) fn new(mut routes: Vec<Arc<Route>>) -> Self {
        // The longest path that fits comes first.
        routes.sort_by_key(|route| std::cmp::Reverse(route.path.len()));
        Self(routes)
    }

    /// All of them.
    pub(crate) fn all(&self) -> &[Arc<Route>] {
        &self.0
    }

    /// The route with the longest path that `path` is at or below.
    ///
    /// # Errors
    /// With its escapes and dots resolved, which is what a server behind this one may do, the path would have another
    /// route: `/open/../closed` must not go where `/closed` does not.
    pub(crate) fn find(&self, path: &str) -> Result<Option<&Arc<Route>>, Ambiguous> {
        let find = |path: &str| self.0.iter().find(|route| is_below(path, &route.path));
        let as_is = find(path);
        if self.0.len() > 1 {
            let other = find(&resolved(path));
            if as_is.map(Arc::as_ptr) != other.map(Arc::as_ptr) {
                return Err(Ambiguous);
            }
        }
        Ok(as_is)
    }
}

/// True if `path` is `prefix` or below it, on the borders of segments.
fn is_below(path: &str, prefix: &str) -> bool {
    let rest = path.strip_prefix(prefix);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || prefix.ends_with('/'))
}

/// Changes of a response's fields.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fields {
    pub(crate) set: Vec<(HeaderName, HeaderValue)>,
    pub(crate) remove: Vec<HeaderName>,
    /// Set unless the response has it.
    pub(crate) hsts: Option<HeaderValue>,
}

impl Fields {
    pub(crate) fn apply(&self, fields: &mut HeaderMap) {
        for name in &self.remove {
            fields.remove(name);
        }
        for (name, value) in &self.set {
            fields.insert(name, value.clone());
        }
        if let Some(hsts) = &self.hsts {
            fields.entry(header::STRICT_TRANSPORT_SECURITY).or_insert_with(|| hsts.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routes(paths: &[&str]) -> Routes {
        let route = |path: &&str| {
            let action = Action::reply("404").unwrap();
            let compression = Compression::new(&[]);
            let fields = Fields::default();
            Arc::new(Route { path: (*path).to_owned(), action, fields, compression, hints: None })
        };
        Routes::new(paths.iter().map(route).collect())
    }

    #[test]
    fn the_longest_path_on_the_border_of_a_segment_is_used() {
        let routes = routes(&["/", "/api", "/api/v2", "/assets/"]);
        for (path, found) in [
            ("/", "/"),
            ("/x", "/"),
            ("/api", "/api"),
            ("/api/v1", "/api"),
            ("/apis", "/"),
            ("/api/v2", "/api/v2"),
            ("/api/v2/x", "/api/v2"),
            ("/api/v22", "/api"),
            ("/assets", "/"),
            ("/assets/a.css", "/assets/"),
            ("/x%2fy%41", "/"),
        ] {
            assert_eq!(routes.find(path).unwrap().unwrap().path, found, "{path}");
        }
    }

    #[test]
    fn a_path_that_could_have_two_routes_has_none() {
        let routes = routes(&["/", "/api", "/api/v2"]);
        let two = [
            "/api/../x",
            "/x/../api",
            "/%61pi",
            "//api",
            "/x/%2e%2e/api",
            "/.\\api",
            "/x%2f..%2Fapi",
            "/api/..;/x/../..",
        ];
        for path in two {
            assert_eq!(routes.find(path).err(), Some(Ambiguous), "{path}");
        }
        // Where all of it leads to one place, it is the upstream's to say what that is.
        assert_eq!(routes.find("/x/../y").unwrap().unwrap().path, "/");
        assert_eq!(routes.find("/api/a/../b").unwrap().unwrap().path, "/api");
    }

    #[test]
    fn without_a_route_nothing_is_found() {
        assert!(routes(&["/api"]).find("/").unwrap().is_none());
    }
}
