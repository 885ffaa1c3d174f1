//! The macro `request`, which declares a request once: its fields, each with its kind and what it means. From the
//! declaration come the struct of the parsed fields, the parser that finds all wrong fields, and the OpenAPI schema.

use serde_json::Value;
use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{
    AdditionalProperties, ObjectBuilder, OneOfBuilder, Ref, Schema, SchemaType, Type,
};

use super::field_parsers::object::{Fields, Mistakes};

/// Named schemas that others refer to.
pub(crate) type Schemas = Vec<(String, RefOr<Schema>)>;

/// A kind of field: how it is parsed, and how the OpenAPI document describes it.
pub trait Kind {
    /// The parsed value.
    type Value;

    /// Reads the field; `None` if it is missing or wrong. A wrong one adds a mistake, which may show `allowed`.
    fn read(fields: &Fields<'_>, name: &str, allowed: &str, mistakes: &mut Mistakes) -> Option<Self::Value>;

    /// The schema of the field, or a reference to it.
    fn schema() -> RefOr<Schema>;

    /// Adds the named schemas that [`Kind::schema`] refers to.
    fn collect(_: &mut Schemas) {}
}

/// A declared request.
pub trait Request: Sized {
    /// The names of the fields that its declaration has.
    const NAMES: &'static [&'static str];

    /// What each of these fields means.
    const ABOUT: &'static [&'static str];

    /// The names of all fields.
    fn names() -> Vec<&'static str> {
        Self::NAMES.to_vec()
    }

    /// Reads the declared fields, not looking for unknown ones. The request is right only if no mistakes were added.
    fn values(fields: &Fields<'_>, mistakes: &mut Mistakes) -> Self;

    /// All fields, as the OpenAPI document describes them.
    fn fields() -> Vec<Field>;
}

/// Declares a request. After a kind, `or` names a default and `required` makes a missing field a mistake, for which a
/// default may stand; a text in brackets says what is allowed. The word after the name opens the JSON: `open`, or
/// `open_or_empty` where the body may be left out. A request `of` another one has the fields of that too, but `without`
/// some; fields of the same name take their place.
macro_rules! request {
    (
        $(#[doc = $about:literal])+
        $(#[example $example:tt])?
        $(#[derive($derive:ident)])?
        pub struct $name:ident $(($open:ident))? $(of $other:ident without $without:tt)? {
            $($(#[doc = $doc:literal])+ $field:ident: $kind:ty $([$allowed:expr])? $(, $how:ident $($default:expr)?)?;)*
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq)]
        $(#[derive($derive)])?
        pub struct $name {
            $($(#[doc = $doc])+ pub $field: $crate::declare::request!(@type $kind $(, $how $($default)?)?),)*
        }

        impl $crate::declare::Request for $name {
            const NAMES: &'static [&'static str] = &[$(stringify!($field)),*];
            const ABOUT: &'static [&'static str] = &[$(concat!($($doc),+)),*];

            fn values(
                fields: &$crate::field_parsers::object::Fields<'_>,
                mistakes: &mut $crate::field_parsers::object::Mistakes,
            ) -> Self {
                // A request may have no fields.
                let _ = (fields, &mistakes);
                $(
                    let allowed = [$($allowed as &str,)? ""][0];
                    let $field = <$kind as $crate::declare::Kind>::read(fields, stringify!($field), allowed, mistakes);
                    $($crate::declare::request!(@missing $how, fields, $field, allowed, mistakes);)?
                )*
                Self { $($field: $crate::declare::request!(@value $field $(, $how $($default)?)?),)* }
            }

            $(fn names() -> Vec<&'static str> {
                $crate::declare::names::<Self, $other>(&$without)
            })?

            fn fields() -> Vec<$crate::declare::Field> {
                let own = vec![$($crate::declare::Field {
                    name: stringify!($field),
                    about: concat!($($doc),+),
                    schema: <$kind as $crate::declare::Kind>::schema(),
                    is_required: [$(stringify!($how),)? ""][0] == "required",
                }),*];
                $(let own = $crate::declare::with_those_of::<$other>(&$without, own);)?
                own
            }
        }

        $(impl $name {
            /// Reads all fields and refuses unknown ones. The request is right only if no mistakes were added.
            pub(crate) fn read(
                fields: &$crate::field_parsers::object::Fields<'_>,
                mistakes: &mut $crate::field_parsers::object::Mistakes,
            ) -> Self {
                fields.check_names("", <Self as $crate::declare::Request>::NAMES, mistakes);
                $crate::declare::Request::values(fields, mistakes)
            }

            /// Parses a body.
            ///
            /// # Errors
            /// A 413 problem if it is too long, 400 if it is not a JSON object in UTF-8, 422 with all wrong fields.
            pub fn parse(json: &[u8]) -> Result<Self, $crate::Problem> {
                let mut mistakes = $crate::field_parsers::object::Mistakes::default();
                let request = Self::read(&$crate::field_parsers::object::$open(json)?, &mut mistakes);
                mistakes.or(request)
            }
        })?

        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                let fields = <Self as $crate::declare::Request>::fields();
                $crate::declare::object(concat!($($about),+), vec![$(serde_json::json!($example))?], fields)
            }
        }

        impl utoipa::ToSchema for $name {
            fn schemas(schemas: &mut $crate::declare::Schemas) {
                $(<$other as utoipa::ToSchema>::schemas(schemas);)?
                let collect: &[fn(&mut $crate::declare::Schemas)] =
                    &[$(<$kind as $crate::declare::Kind>::collect),*];
                collect.iter().for_each(|collect| collect(schemas));
            }
        }
    };
    (@type $kind:ty) => { Option<<$kind as $crate::declare::Kind>::Value> };
    (@type $kind:ty, required) => { Option<<$kind as $crate::declare::Kind>::Value> };
    (@type $kind:ty, $how:ident $default:expr) => { <$kind as $crate::declare::Kind>::Value };
    (@value $field:ident) => { $field };
    (@value $field:ident, required) => { $field };
    (@value $field:ident, $how:ident $default:expr) => { $field.unwrap_or($default) };
    (@missing or, $fields:ident, $field:ident, $allowed:ident, $mistakes:ident) => {};
    (@missing required, $fields:ident, $field:ident, $allowed:ident, $mistakes:ident) => {
        if $fields.get(stringify!($field)).is_none() {
            $mistakes.add(stringify!($field), "missing", $allowed);
        }
    };
}
pub(crate) use request;

/// What a field of a request means; `None` if the request does not declare it itself.
pub fn about<R: Request>(field: &str) -> Option<&'static str> {
    let place = R::NAMES.iter().position(|name| *name == field)?;
    Some(R::ABOUT[place].trim())
}

/// A field of a declared request.
pub struct Field {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) schema: RefOr<Schema>,
    pub(crate) is_required: bool,
}

/// The names of the fields of `Other`, except those in `without`, followed by the own ones that `Other` does not have.
pub(crate) fn names<R: Request, Other: Request>(without: &[&str]) -> Vec<&'static str> {
    let of_other = Other::NAMES.iter().filter(|name| !without.contains(name));
    of_other.chain(R::NAMES.iter().filter(|name| !Other::NAMES.contains(name))).copied().collect()
}

/// The fields of `Other`, except those in `without` or with the name of an own one, followed by the own ones.
pub(crate) fn with_those_of<Other: Request>(without: &[&str], own: Vec<Field>) -> Vec<Field> {
    let is_taken =
        |field: &Field| !without.contains(&field.name) && own.iter().all(|other| other.name != field.name);
    let mut fields: Vec<_> = Other::fields().into_iter().filter(is_taken).collect();
    fields.extend(own);
    fields
}

/// The schema of an object that has these fields and no others. A field that is not required may be null.
pub(crate) fn object(about: &str, examples: Vec<Value>, fields: Vec<Field>) -> RefOr<Schema> {
    let object = ObjectBuilder::new()
        .description(Some(about.trim()))
        .examples(examples)
        .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(false)));
    let with = |object: ObjectBuilder, Field { name, about, schema, is_required }: Field| {
        let object = object.property(name, described(schema, about.trim(), !is_required));
        if is_required { object.required(name) } else { object }
    };
    fields.into_iter().fold(object, with).into()
}

/// The schema of a field: the given one with the field's description, and null as a further value if that is allowed.
fn described(schema: RefOr<Schema>, about: &str, may_be_null: bool) -> RefOr<Schema> {
    let with_null = |one: &SchemaType| match one {
        SchemaType::Type(one) if may_be_null => SchemaType::from_iter([one.clone(), Type::Null]),
        other => other.clone(),
    };
    match schema {
        RefOr::T(Schema::Object(mut object)) => {
            object.schema_type = with_null(&object.schema_type);
            object.description = Some(about.to_owned());
            Schema::Object(object).into()
        }
        RefOr::T(Schema::Array(mut array)) => {
            array.schema_type = with_null(&array.schema_type);
            array.description = Some(about.to_owned());
            Schema::Array(array).into()
        }
        RefOr::Ref(mut reference) if !may_be_null => {
            reference.description = about.to_owned();
            reference.into()
        }
        other => {
            let null = ObjectBuilder::new().schema_type(Type::Null);
            OneOfBuilder::new().item(other).item(null).description(Some(about)).into()
        }
    }
}

/// A reference to a named schema.
pub(crate) fn reference<T: ToSchema>() -> RefOr<Schema> {
    Ref::from_schema_name(T::name()).into()
}

/// Adds a named schema, and those that it refers to.
pub(crate) fn collect<T: ToSchema>(schemas: &mut Schemas) {
    T::schemas(schemas);
    schemas.push((T::name().into_owned(), T::schema()));
}
