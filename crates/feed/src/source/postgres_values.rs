//! Converts the values of PostgreSQL to those of a feed, by the types of columns, and the arguments of a query to the
//! types that the server wants.

use std::error::Error;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ringback_core::clock::Timestamp;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type};
use tokio_postgres::{Column, Row};

use super::Value;
use crate::query::Parameter;

type Failure = Box<dyn Error + Sync + Send>;

/// Reads all values of a row. A value that cannot be converted becomes [`Value::Unreadable`].
pub(super) fn read_row(row: &Row) -> Vec<Value> {
    let value = |column| match row.try_get::<_, ReadValue>(column) {
        Ok(ReadValue(value)) => value,
        Err(error) => {
            Value::Unreadable(error.source().map_or_else(|| error.to_string(), ToString::to_string))
        }
    };
    (0..row.len()).map(value).collect()
}

/// Why a column cannot be read: its type is not supported. `None` if it is.
pub(super) fn unreadable_column(column: &Column) -> Option<String> {
    let ty = column.type_();
    (!is_readable(ty)).then(|| {
        format!("column {} has type {ty}, which is not read: cast it, for example {0}::text", column.name())
    })
}

fn is_readable(ty: &Type) -> bool {
    const TYPES: [Type; 18] = [
        Type::BOOL,
        Type::INT2,
        Type::INT4,
        Type::INT8,
        Type::FLOAT4,
        Type::FLOAT8,
        Type::TEXT,
        Type::VARCHAR,
        Type::BPCHAR,
        Type::NAME,
        Type::UUID,
        Type::JSON,
        Type::JSONB,
        Type::BYTEA,
        Type::TIMESTAMPTZ,
        Type::TIMESTAMP,
        Type::TEXT_ARRAY,
        Type::VARCHAR_ARRAY,
    ];
    TYPES.contains(ty)
}

struct ReadValue(Value);

impl<'a> FromSql<'a> for ReadValue {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Self, Failure> {
        Ok(Self(match *ty {
            Type::BOOL => Value::Bool(bool::from_sql(ty, raw)?),
            Type::INT2 => Value::Int(i16::from_sql(ty, raw)?.into()),
            Type::INT4 => Value::Int(i32::from_sql(ty, raw)?.into()),
            Type::INT8 => Value::Int(i64::from_sql(ty, raw)?),
            Type::FLOAT4 => Value::Float(f32::from_sql(ty, raw)?.into()),
            Type::FLOAT8 => Value::Float(f64::from_sql(ty, raw)?),
            Type::UUID => Value::Text(uuid_text(raw)?),
            Type::JSON => Value::Json(String::from_utf8(raw.to_vec())?),
            // The first byte is the version of the format.
            Type::JSONB => Value::Json(String::from_utf8(raw.get(1..).unwrap_or_default().to_vec())?),
            Type::BYTEA => Value::Bytes(raw.to_vec()),
            Type::TIMESTAMPTZ | Type::TIMESTAMP => Value::Time(time(raw)?),
            Type::TEXT_ARRAY | Type::VARCHAR_ARRAY => Value::List(Vec::from_sql(ty, raw)?),
            // The server fills it up with spaces, which do not count.
            Type::BPCHAR => Value::Text(String::from_sql(ty, raw)?.trim_end_matches(' ').to_owned()),
            _ => Value::Text(String::from_sql(ty, raw)?),
        }))
    }

    fn from_sql_null(_: &Type) -> Result<Self, Failure> {
        Ok(Self(Value::Null))
    }

    fn accepts(ty: &Type) -> bool {
        is_readable(ty)
    }
}

/// Converts a time from microseconds since 2000, rounded up to a millisecond so that nothing is early. Fails for an
/// infinite time, and one before 1970.
fn time(raw: &[u8]) -> Result<Timestamp, Failure> {
    const FROM_1970: i64 = 946_684_800_000_000;
    let micros = i64::from_be_bytes(raw.try_into()?);
    if micros == i64::MAX || micros == i64::MIN {
        return Err("is infinite".into());
    }
    let micros = u64::try_from(micros.saturating_add(FROM_1970)).map_err(|_| "lies before 1970")?;
    Ok(Timestamp::from_millis(micros.div_ceil(1000)))
}

fn uuid_text(raw: &[u8]) -> Result<String, Failure> {
    let number = u128::from_be_bytes(raw.try_into()?);
    let hex = format!("{number:032x}");
    Ok([&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-"))
}

fn uuid_bytes(text: &str) -> Result<[u8; 16], Failure> {
    Ok(u128::from_str_radix(&text.replace('-', ""), 16)?.to_be_bytes())
}

/// The argument for a parameter, which is converted to the type that the server has inferred for it.
#[derive(Clone, Debug)]
pub(super) enum Argument {
    Time(Parameter, Timestamp),
    /// `None` is before all values.
    After(Option<Value>),
    Limit(usize),
}

impl ToSql for Argument {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Failure> {
        match self {
            Self::Time(parameter, at) => match *ty {
                Type::TIMESTAMPTZ | Type::TIMESTAMP => system_time(*at).to_sql(ty, out),
                Type::TEXT | Type::VARCHAR => at.to_string().to_sql(ty, out),
                _ => Err(format!(
                    "{parameter} is a time and compared with {ty}: make a time of that, or write {parameter}::timestamptz and compute with it"
                )
                .into()),
            },
            Self::After(after) => match (ty.clone(), after) {
                (Type::INT8, None) => i64::MIN.to_sql(ty, out),
                (Type::INT8, Some(Value::Int(id))) => id.to_sql(ty, out),
                (Type::INT4, None) => i32::MIN.to_sql(ty, out),
                (Type::INT4, Some(Value::Int(id))) => i32::try_from(*id)?.to_sql(ty, out),
                (Type::INT2, None) => i16::MIN.to_sql(ty, out),
                (Type::INT2, Some(Value::Int(id))) => i16::try_from(*id)?.to_sql(ty, out),
                (Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME, None) => "".to_sql(ty, out),
                (Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME, Some(Value::Text(id))) => {
                    id.to_sql(ty, out)
                }
                (Type::TEXT, Some(Value::Int(id))) => id.to_string().to_sql(ty, out),
                (Type::UUID, after) => {
                    let id = match after {
                        Some(Value::Text(id)) => uuid_bytes(id)?,
                        _ => [0; 16],
                    };
                    out.extend_from_slice(&id);
                    Ok(IsNull::No)
                }
                _ => Err(format!(
                    ":after is compared with {ty}: id must be an integer, a text or a uuid, and the column that :after is compared with of the same type"
                )
                .into()),
            },
            Self::Limit(limit) => match *ty {
                Type::INT4 => i32::try_from(*limit)?.to_sql(ty, out),
                _ => i64::try_from(*limit)?.to_sql(&Type::INT8, out),
            },
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn to_sql_checked(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Failure> {
        self.to_sql(ty, out)
    }
}

fn system_time(at: Timestamp) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(at.as_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(ty: &Type, raw: &[u8]) -> Result<Value, String> {
        ReadValue::from_sql(ty, raw).map(|read| read.0).map_err(|error| error.to_string())
    }

    #[test]
    fn times_are_never_early_and_infinity_is_none() {
        let at = |micros: i64| read(&Type::TIMESTAMPTZ, &micros.to_be_bytes());
        assert_eq!(at(1), Ok(Value::Time(Timestamp::from_millis(946_684_800_001))));
        assert_eq!(at(0), Ok(Value::Time(Timestamp::from_millis(946_684_800_000))));
        assert!(at(i64::MAX).unwrap_err().contains("infinite"));
        assert!(at(i64::MIN + 1).unwrap_err().contains("1970"));
    }

    #[test]
    fn a_uuid_is_written_and_read() {
        let text = "00112233-4455-6677-8899-aabbccddeeff";
        let bytes = uuid_bytes(text).unwrap();
        assert_eq!(read(&Type::UUID, &bytes), Ok(Value::Text(text.to_owned())));
        assert_eq!(read(&Type::JSONB, b"\x01{}"), Ok(Value::Json("{}".to_owned())));
    }

    #[test]
    fn an_argument_of_another_type_says_what_to_write() {
        let mut out = BytesMut::new();
        let from = Argument::Time(Parameter::From, Timestamp::from_millis(0));
        let why = from.to_sql(&Type::INT8, &mut out).err().unwrap().to_string();
        assert!(why.contains(":from::timestamptz"), "{why}");
        let why = Argument::After(None).to_sql(&Type::NUMERIC, &mut out).err().unwrap().to_string();
        assert!(why.contains("uuid"), "{why}");
    }
}
