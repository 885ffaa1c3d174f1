//! The kinds of fields of requests: numbers, flags, objects, durations, times, texts; and the macro `kinds` for more.

pub(crate) mod jobs;

use std::marker::PhantomData;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use ringback_core::clock::Timestamp;
use ringback_core::job::{MAX_AHEAD, MAX_TTR, MIN_TTR};
use ringback_core::limits::MAX_ERROR;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Schema, SchemaType, Type};

use super::declare::{Kind, Request, Schemas, collect, reference};
use super::field_parsers::due::time;
use super::field_parsers::object::{Fields, Mistakes, parse_text, read};
use super::field_parsers::values::{
    MAX_KEEP, MAX_WAIT, duration_within, field, is_line, is_reason, object, parsed,
};
use super::schema::{
    DeadReason, Delay, ErrorMessage, ReserveWait, RunId, SecretRetention, SigningSecretText, Time, Ttr,
};

/// A whole number within a range.
pub struct Whole<T, const LEAST: u64, const MOST: u64>(PhantomData<T>);

impl<T: Copy + DeserializeOwned + TryInto<u64>, const LEAST: u64, const MOST: u64> Kind
    for Whole<T, LEAST, MOST>
{
    type Value = T;

    fn read(fields: &Fields<'_>, name: &str, allowed: &str, mistakes: &mut Mistakes) -> Option<T> {
        let is_inside =
            |number: &T| (*number).try_into().is_ok_and(|number| (LEAST..=MOST).contains(&number));
        parsed(fields, name, allowed, mistakes, |raw| read::<T>(raw).filter(is_inside))
    }

    fn schema() -> RefOr<Schema> {
        let number = ObjectBuilder::new().schema_type(Type::Integer);
        number.minimum(Some(LEAST)).maximum(Some(MOST)).into()
    }
}

/// True or false.
pub struct Flag;

impl Kind for Flag {
    type Value = bool;

    fn read(fields: &Fields<'_>, name: &str, _: &str, mistakes: &mut Mistakes) -> Option<bool> {
        parsed(fields, name, "true or false", mistakes, read)
    }

    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new().schema_type(Type::Boolean).into()
    }
}

/// A field that is read together with others, elsewhere.
pub struct Given<T>(PhantomData<T>);

impl<T: ToSchema> Kind for Given<T> {
    type Value = ();

    fn read(_: &Fields<'_>, _: &str, _: &str, _: &mut Mistakes) -> Option<()> {
        None
    }

    fn schema() -> RefOr<Schema> {
        reference::<T>()
    }

    fn collect(schemas: &mut Schemas) {
        collect::<T>(schemas);
    }
}

/// An object with declared fields.
pub struct Part<R>(PhantomData<R>);

impl<R: Request + ToSchema> Kind for Part<R> {
    type Value = R;

    fn read(fields: &Fields<'_>, name: &str, allowed: &str, mistakes: &mut Mistakes) -> Option<R> {
        let fields = object(fields, name, allowed, mistakes)?;
        let mut inner = Mistakes::default();
        fields.check_names("", R::NAMES, &mut inner);
        let value = R::values(&fields, &mut inner);
        let is_right = inner.is_empty();
        mistakes.add_within(name, inner);
        is_right.then_some(value)
    }

    fn schema() -> RefOr<Schema> {
        reference::<R>()
    }

    fn collect(schemas: &mut Schemas) {
        collect::<R>(schemas);
    }
}

/// A text that is parsed to a `T` and described as an `S`.
pub struct Text<S, T>(PhantomData<(S, T)>);

impl<S: ToSchema, T: FromStr> Kind for Text<S, T> {
    type Value = T;

    fn read(fields: &Fields<'_>, name: &str, allowed: &str, mistakes: &mut Mistakes) -> Option<T> {
        parsed(fields, name, allowed, mistakes, parse_text)
    }

    fn schema() -> RefOr<Schema> {
        reference::<S>()
    }

    fn collect(schemas: &mut Schemas) {
        collect::<S>(schemas);
    }
}

/// Any JSON, read elsewhere.
pub struct AnyJson;

impl Kind for AnyJson {
    type Value = ();

    fn read(_: &Fields<'_>, _: &str, _: &str, _: &mut Mistakes) -> Option<()> {
        None
    }

    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new().schema_type(SchemaType::AnyValue).into()
    }
}

/// Makes kinds of named values, each with its type and how it is read. One without a name in the document has a schema of
/// its own, which may refer to `of`.
macro_rules! kinds {
    ($($name:ident: $value:ty = $read:expr $(, as $schema:expr $(, of $item:ident)?)?;)+) => {$(
        impl $crate::declare::Kind for $name {
            type Value = $value;

            fn read(
                fields: &$crate::field_parsers::object::Fields<'_>,
                name: &str,
                allowed: &str,
                mistakes: &mut $crate::field_parsers::object::Mistakes,
            ) -> Option<$value> {
                $read(fields, name, allowed, mistakes)
            }

            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                kinds!(@schema $($schema)?)
            }

            fn collect(schemas: &mut $crate::declare::Schemas) {
                kinds!(@collect schemas $(, $schema $(, $item)?)?);
            }
        }
    )+};
    (@schema) => { $crate::declare::reference::<Self>() };
    (@schema $schema:expr) => { $schema.into() };
    (@collect $schemas:ident) => { $crate::declare::collect::<Self>($schemas) };
    (@collect $schemas:ident, $schema:expr) => { let _ = $schemas; };
    (@collect $schemas:ident, $schema:expr, $item:ident) => { $crate::declare::collect::<$item>($schemas) };
}
pub(crate) use kinds;

/// The schema of a list.
pub(crate) fn list<T: ToSchema>() -> ArrayBuilder {
    ArrayBuilder::new().items(reference::<T>())
}

kinds! {
    Ttr: Duration = within("is not a time to run", MIN_TTR..=MAX_TTR, "100 ms to 12 h");
    Delay: Duration = within("is not a delay", Duration::ZERO..=MAX_AHEAD, "at most 10 years");
    ReserveWait: Duration = within("is not a wait", Duration::ZERO..=MAX_WAIT, "0 to 60 s");
    SecretRetention: Duration = within("is not how long", Duration::ZERO..=MAX_KEEP, "0s to 30d");
    Time: Timestamp = |fields, name, _, mistakes| time(fields, name, mistakes);
    ErrorMessage: String = valid(|raw| read::<String>(raw).filter(|text| is_line(text, MAX_ERROR)));
    RunId: String = valid(|raw| read::<String>(raw).filter(|text| is_run_id(text)));
    DeadReason: String = valid(|raw| read::<String>(raw).filter(|text| is_reason(text)));
    SigningSecretText: String = |fields: &Fields<'_>, name, _, mistakes: &mut Mistakes| {
        // The value is not shown: it may be a secret.
        let text = read::<String>(fields.get(name)?);
        if text.is_none() {
            mistakes.add(name, "it is not a string", "whsec_ and the base64 of 24 to 64 random bytes");
        }
        text
    };
}

/// A reader of a field, for `kinds!`: parses its value. The declaration of the field says what is allowed.
pub(crate) fn valid<T>(
    parse: impl FnOnce(&RawValue) -> Option<T>,
) -> impl FnOnce(&Fields<'_>, &str, &str, &mut Mistakes) -> Option<T> {
    |fields, name, allowed, mistakes| parsed(fields, name, allowed, mistakes, parse)
}

/// A reader of a field, for `kinds!`: parses its value. A mistake shows `wrong` and `allowed`.
pub(crate) fn worded<T>(
    wrong: &'static str,
    allowed: &'static str,
    parse: impl FnOnce(&RawValue) -> Option<T>,
) -> impl FnOnce(&Fields<'_>, &str, &str, &mut Mistakes) -> Option<T> {
    move |fields, name, _, mistakes| field(fields, name, wrong, allowed, mistakes, parse)
}

/// A reader of a field, for `kinds!`: a duration within `range`. A mistake shows `wrong` and `allowed`.
pub(crate) fn within(
    wrong: &'static str,
    range: RangeInclusive<Duration>,
    allowed: &'static str,
) -> impl FnOnce(&Fields<'_>, &str, &str, &mut Mistakes) -> Option<Duration> {
    move |fields, name, _, mistakes| duration_within(fields, name, wrong, range, allowed, mistakes)
}

fn is_run_id(text: &str) -> bool {
    let is_hex = |digit: u8| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit);
    (1..=64).contains(&text.len()) && text.bytes().all(is_hex)
}
