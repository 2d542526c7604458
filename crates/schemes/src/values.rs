//! A policy's table of parameters, as a profile's TOML has it. Without the feature `profiles-toml` no such table exists.

use serde::de::DeserializeOwned;

#[cfg(feature = "profiles-toml")]
pub(crate) use toml::de::Error;

/// A table of parameters.
#[cfg(feature = "profiles-toml")]
pub(crate) type Values<'a> = toml::Spanned<toml::de::DeValue<'a>>;

/// A table of parameters: nothing makes one.
#[cfg(not(feature = "profiles-toml"))]
pub(crate) struct Values<'a>(std::convert::Infallible, std::marker::PhantomData<&'a ()>);

/// Why parameters are not valid: nothing reads some.
#[cfg(not(feature = "profiles-toml"))]
pub(crate) type Error = std::convert::Infallible;

/// Reads parameters.
#[cfg(feature = "profiles-toml")]
pub(crate) fn parse<P: DeserializeOwned>(value: Values<'_>) -> Result<P, Error> {
    P::deserialize(toml::de::ValueDeserializer::from(value))
}

/// Reads parameters.
#[cfg(not(feature = "profiles-toml"))]
pub(crate) fn parse<P: DeserializeOwned>(value: Values<'_>) -> Result<P, Error> {
    match value.0 {}
}
