//! One policy of the registry: what it is called, how its parameters are read, and what it goes together with.

use std::fmt;

use posthaste_policy::{
    AckFactory, CongestionFactory, CreditFactory, Description, GroupFactory, PolicyText, ProfileBuilder,
    RepairFactory, Seam, SilenceFactory, SlowStartFactory, StartFactory,
};
use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor};

use crate::values::{Error, Values, parse};

/// A property of a policy that policies of other seams may need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Property {
    /// A controller that begins with the window that the start policy says. (One with a promised rate begins with that.)
    TakesFirstWindow,
    /// A controller that keeps a window to which a start policy has jumped, until the path itself tells it otherwise:
    /// one without a model of the path.
    TakesJump,
    /// A controller whose window grows until losses cut it.
    CutByLoss,
    /// A controller of which one can serve all connections of a group.
    ServesGroup,
}

/// What a policy needs of the policy of another seam.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    /// The other seam.
    pub seam: Seam,
    /// What its policy must have.
    pub property: Property,
    /// Why, and what to write instead.
    pub reason: &'static str,
}

/// A parameter without which a profile cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Required {
    /// Its key.
    pub key: &'static str,
    /// A key that does instead.
    pub or: Option<&'static str>,
    /// What it is.
    pub what: &'static str,
    /// A value, as it is written after `key=`.
    pub example: &'static str,
}

/// A policy of the registry.
#[derive(Clone, Copy)]
pub struct Entry {
    /// The seams that it is for: one, or both of credit.
    pub seams: &'static [Seam],
    /// Its name and its claims.
    pub text: PolicyText,
    /// What it needs of other seams' policies.
    pub needs: &'static [Need],
    /// What other policies may need of it.
    pub properties: &'static [Property],
    /// The parameters that must be given where a profile is used.
    pub requires: &'static [Required],
    read: Read,
    keys: fn() -> &'static [&'static str],
}

/// Reads a policy's table of parameters.
pub(crate) type Read = fn(Values<'_>) -> Result<Chosen, Error>;

/// A policy with the parameters that a profile gives it.
pub(crate) struct Chosen {
    /// What it says of itself.
    pub(crate) description: Description,
    /// True for controllers that leave slow start unused.
    pub(crate) has_own_startup: bool,
    /// Puts its factory into a profile, for the seam; `None` if a required parameter is missing.
    pub(crate) install: Option<Install>,
}

pub(crate) type Install = Box<dyn FnOnce(ProfileBuilder, Seam) -> ProfileBuilder>;

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Entry({:?}, {})", self.seams, self.text.name)
    }
}

/// `Entry::start::<Parameters>(TEXT)` and its like: the entry of a policy whose parameters are its factory.
macro_rules! constructor {
    ($name:ident, $factory:ident, $seams:expr, $install:expr) => {
        #[doc = concat!("The entry of a policy whose parameters are a [`", stringify!($factory), "`].")]
        pub(crate) const fn $name<P: $factory + DeserializeOwned + 'static>(text: PolicyText) -> Self {
            Self::new::<P>(&$seams, text, |value| {
                let parameters: P = parse(value)?;
                let install: fn(P, ProfileBuilder, Seam) -> ProfileBuilder = $install;
                Ok(Chosen {
                    description: parameters.describe(),
                    has_own_startup: false,
                    install: Some(Box::new(move |builder, seam| install(parameters, builder, seam))),
                })
            })
        }
    };
}

impl Entry {
    /// The entry of a policy with parameters of type `P` that `read` reads.
    pub(crate) const fn new<P: DeserializeOwned>(
        seams: &'static [Seam],
        text: PolicyText,
        read: Read,
    ) -> Self {
        Self { seams, text, needs: &[], properties: &[], requires: &[], read, keys: keys_of::<P> }
    }

    constructor!(start, StartFactory, [Seam::Start], |p, builder, _| builder.start(p));
    constructor!(slow_start, SlowStartFactory, [Seam::SlowStart], |p, builder, _| builder.slow_start(p));
    constructor!(silence, SilenceFactory, [Seam::Silence], |p, builder, _| builder.silence(p));
    constructor!(credit, CreditFactory, [Seam::StreamCredit, Seam::ConnectionCredit], |p, builder, seam| {
        if seam == Seam::StreamCredit { builder.stream_credit(p) } else { builder.connection_credit(p) }
    });
    constructor!(ack, AckFactory, [Seam::Ack], |p, builder, _| builder.ack(p));
    constructor!(repair, RepairFactory, [Seam::Repair], |p, builder, _| builder.repair(p));
    constructor!(group, GroupFactory, [Seam::Group], |p, builder, _| builder.group(p));

    /// The entry of a controller whose parameters are a [`CongestionFactory`].
    pub(crate) const fn congestion<P: CongestionFactory + DeserializeOwned>(text: PolicyText) -> Self {
        Self::new::<P>(&[Seam::Congestion], text, |value| {
            let parameters: P = parse(value)?;
            Ok(Chosen {
                description: parameters.describe(),
                has_own_startup: parameters.has_own_startup(),
                install: Some(Box::new(move |builder, _| builder.congestion(parameters))),
            })
        })
    }

    /// The same with these needs.
    pub(crate) const fn needing(mut self, needs: &'static [Need]) -> Self {
        self.needs = needs;
        self
    }

    /// The same with these properties.
    pub(crate) const fn with(mut self, properties: &'static [Property]) -> Self {
        self.properties = properties;
        self
    }

    /// The same with parameters that must be given where a profile is used.
    pub(crate) const fn requiring(mut self, requires: &'static [Required]) -> Self {
        self.requires = requires;
        self
    }

    /// The policy's name, as in a profile's TOML.
    pub const fn name(&self) -> &'static str {
        self.text.name
    }

    /// The keys of its parameters.
    pub fn keys(&self) -> &'static [&'static str] {
        (self.keys)()
    }

    /// Its constants and the MUSTs that it breaks, where nothing is set; `None` if something must be.
    #[cfg(feature = "profiles-toml")]
    pub fn defaults(&self) -> Option<Description> {
        let empty = toml::Spanned::new(0..0, toml::de::DeValue::Table(toml::de::DeTable::new()));
        self.read(empty).ok().map(|chosen| chosen.description)
    }

    pub(crate) fn read(&self, value: Values<'_>) -> Result<Chosen, Error> {
        (self.read)(value)
    }
}

/// The names of a struct's fields, as its deserializer asks for them.
fn keys_of<P: DeserializeOwned>() -> &'static [&'static str] {
    let mut keys: &'static [&'static str] = &[];
    // The answer is in what was asked; there is no value to be had.
    let _ = P::deserialize(Keys(&mut keys)).is_ok();
    keys
}

/// A deserializer that takes down which fields a struct has.
struct Keys<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for Keys<'_> {
    type Error = serde::de::value::Error;

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Self::Error> {
        Err(Self::Error::custom("only fields are asked for"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        *self.0 = fields;
        self.deserialize_any(visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use crate::congestion::{cubic, guaranteed};
    use crate::credit::fixed;
    use crate::slow_start::classic;

    #[test]
    fn keys_are_the_fields_of_the_parameters() {
        assert_eq!(fixed::ENTRY.keys(), ["window"]);
        assert!(classic::ENTRY.keys().is_empty());
        assert!(cubic::ENTRY.keys().contains(&"fast_convergence"));
    }

    #[test]
    fn defaults_are_to_be_had_where_nothing_must_be_set() {
        assert!(fixed::ENTRY.defaults().is_none());
        assert!(!cubic::ENTRY.defaults().unwrap().constants.is_empty());
        assert!(!guaranteed::ENTRY.defaults().unwrap().breaks.is_empty());
    }
}
