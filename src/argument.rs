//! Arguments of a launch: typed scalars and buffers.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// Most elements a buffer is read with; far above what any machine's memory holds.
const MAX_ELEMENTS: usize = 1 << 18;

/// The type of a scalar or of the elements of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ElementType {
    /// 8 bits, signed.
    I8,
    /// 8 bits, unsigned.
    U8,
    /// 16 bits, signed.
    I16,
    /// 16 bits, unsigned.
    U16,
    /// 32 bits, signed.
    I32,
    /// 32 bits, unsigned.
    U32,
    /// 64 bits, signed.
    I64,
    /// 64 bits, unsigned.
    U64,
}

impl ElementType {
    /// Every type.
    pub const ALL: [Self; 8] = [Self::I8, Self::U8, Self::I16, Self::U16, Self::I32, Self::U32, Self::I64, Self::U64];

    /// The name, such as `i32`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::I8 => "i8",
            Self::U8 => "u8",
            Self::I16 => "i16",
            Self::U16 => "u16",
            Self::I32 => "i32",
            Self::U32 => "u32",
            Self::I64 => "i64",
            Self::U64 => "u64",
        }
    }

    /// Size in bytes.
    #[must_use]
    pub const fn bytes(self) -> u8 {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 => 2,
            Self::I32 | Self::U32 => 4,
            Self::I64 | Self::U64 => 8,
        }
    }

    /// Whether values can be negative.
    #[must_use]
    pub const fn is_signed(self) -> bool {
        matches!(self, Self::I8 | Self::I16 | Self::I32 | Self::I64)
    }

    /// The least value.
    #[must_use]
    pub const fn min(self) -> i128 {
        if self.is_signed() { -(1 << (8 * self.bytes() - 1)) } else { 0 }
    }

    /// The greatest value.
    #[must_use]
    pub const fn max(self) -> i128 {
        (1 << (8 * self.bytes() - self.is_signed() as u8)) - 1
    }

    /// The value of a little-endian number of this type's size; missing bytes are zero.
    fn value(self, bytes: &[u8]) -> i128 {
        let unsigned = bytes.iter().rev().fold(0_i128, |value, &byte| value << 8 | i128::from(byte));
        if self.is_signed() && unsigned > self.max() { unsigned - (1 << (8 * self.bytes())) } else { unsigned }
    }

    fn check(self, value: i128) -> Result<i128, ArgumentError> {
        if (self.min()..=self.max()).contains(&value) {
            Ok(value)
        } else {
            Err(ArgumentError::Range { value, element: self, min: self.min(), max: self.max() })
        }
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for ElementType {
    type Err = ArgumentError;

    fn from_str(text: &str) -> Result<Self, ArgumentError> {
        let found = Self::ALL.into_iter().find(|element| element.name() == text);
        found.ok_or_else(|| ArgumentError::Type { text: text.to_owned() })
    }
}

/// A Rust integer that a kernel can take or keep in a buffer.
pub trait Element: Copy + Into<i128> + TryFrom<i128> {
    /// The type.
    const TYPE: ElementType;
}

macro_rules! elements {
    ($($rust:ty = $element:ident),*) => {$(
        impl Element for $rust {
            const TYPE: ElementType = ElementType::$element;
        }

        impl From<$rust> for Argument {
            fn from(value: $rust) -> Self {
                Self::Scalar(Scalar { element: ElementType::$element, value: value.into() })
            }
        }
    )*};
}

elements!(i8 = I8, u8 = U8, i16 = I16, u16 = U16, i32 = I32, u32 = U32, i64 = I64, u64 = U64);

/// A number with its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scalar {
    element: ElementType,
    value: i128,
}

impl Scalar {
    /// A value of a type.
    ///
    /// # Errors
    /// If the type cannot hold it.
    pub fn new(element: ElementType, value: i128) -> Result<Self, ArgumentError> {
        Ok(Self { element, value: element.check(value)? })
    }

    /// The type.
    #[must_use]
    pub const fn element(self) -> ElementType {
        self.element
    }

    /// The value.
    #[must_use]
    pub const fn value(self) -> i128 {
        self.value
    }

    /// The bytes, little endian.
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        self.value.to_le_bytes()[..usize::from(self.element.bytes())].to_vec()
    }
}

/// An array in global memory, before or after a launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buffer {
    element: ElementType,
    values: Vec<i128>,
}

impl Buffer {
    /// Values of a type.
    ///
    /// # Errors
    /// If the type cannot hold one of them.
    pub fn new(element: ElementType, values: impl IntoIterator<Item = i128>) -> Result<Self, ArgumentError> {
        let values = values.into_iter().map(|value| element.check(value)).collect::<Result<_, _>>()?;
        Ok(Self { element, values })
    }

    /// The type of the elements.
    #[must_use]
    pub const fn element(&self) -> ElementType {
        self.element
    }

    /// The values, whatever the type.
    #[must_use]
    pub fn values(&self) -> &[i128] {
        &self.values
    }

    /// The values as a Rust type; `None` if one does not fit it.
    #[must_use]
    pub fn to_vec<T: Element>(&self) -> Option<Vec<T>> {
        self.values.iter().map(|&value| T::try_from(value).ok()).collect()
    }

    /// Size in bytes.
    pub(crate) fn num_bytes(&self) -> usize {
        self.values.len() * usize::from(self.element.bytes())
    }

    /// The bytes, little endian.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let size = usize::from(self.element.bytes());
        self.values.iter().flat_map(|value| value.to_le_bytes().into_iter().take(size)).collect()
    }

    /// A buffer of the same type with other contents.
    pub(crate) fn with_bytes(&self, bytes: &[u8]) -> Self {
        let size = usize::from(self.element.bytes());
        Self { element: self.element, values: bytes.chunks(size).map(|chunk| self.element.value(chunk)).collect() }
    }
}

/// An argument of a kernel.
///
/// ```
/// use qwengpu::Argument;
/// assert_eq!("i32:-0x10".parse(), Ok(Argument::from(-16_i32)));
/// assert_eq!("buf:u8:1,2".parse(), Ok(Argument::buffer(&[1_u8, 2])));
/// assert_eq!("zeros:i64:3".parse(), Ok(Argument::zeros::<i64>(3)));
/// assert!("u8:256".parse::<Argument>().is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Argument {
    /// A number.
    Scalar(Scalar),
    /// The address of a buffer with these contents.
    Buffer(Buffer),
}

impl Argument {
    /// A buffer.
    #[must_use]
    pub fn buffer<T: Element>(values: &[T]) -> Self {
        Self::Buffer(Buffer { element: T::TYPE, values: values.iter().map(|&value| value.into()).collect() })
    }

    /// A buffer of zeros.
    #[must_use]
    pub fn zeros<T: Element>(count: usize) -> Self {
        Self::Buffer(Buffer { element: T::TYPE, values: vec![0; count] })
    }
}

/// `TYPE:VALUE`, `buf:TYPE:VALUE,…` or `zeros:TYPE:COUNT`.
impl FromStr for Argument {
    type Err = ArgumentError;

    fn from_str(text: &str) -> Result<Self, ArgumentError> {
        let form = || ArgumentError::Form { text: text.to_owned() };
        let (first, rest) = text.split_once(':').ok_or_else(form)?;
        match first {
            "buf" => {
                let (element, values) = rest.split_once(':').ok_or_else(form)?;
                let element = element.parse()?;
                let values = values.split(',').map(number).collect::<Result<Vec<_>, _>>()?;
                Buffer::new(element, values).map(Self::Buffer)
            }
            "zeros" => {
                let (element, count) = rest.split_once(':').ok_or_else(form)?;
                let element = element.parse()?;
                let count = number(count)?;
                let valid = usize::try_from(count).ok().filter(|&count| count <= MAX_ELEMENTS);
                let count = valid.ok_or(ArgumentError::Count { count, max: MAX_ELEMENTS })?;
                Ok(Self::Buffer(Buffer { element, values: vec![0; count] }))
            }
            element => Ok(Self::Scalar(Scalar::new(element.parse()?, number(rest)?)?)),
        }
    }
}

/// Reads a decimal or `0x` number with an optional sign.
fn number(text: &str) -> Result<i128, ArgumentError> {
    let error = || ArgumentError::Number { text: text.to_owned() };
    let trimmed = text.trim();
    let (negative, digits) = match trimmed.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, trimmed.strip_prefix('+').unwrap_or(trimmed)),
    };
    let (radix, digits) = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(digits) => (16, digits),
        None => (10, digits),
    };
    // from_str_radix would take a second sign.
    if !digits.chars().all(|digit| digit.is_digit(radix)) {
        return Err(error());
    }
    let value = i128::from_str_radix(digits, radix).map_err(|_| error())?;
    Ok(if negative { -value } else { value })
}

/// Text or values that are no argument.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ArgumentError {
    /// The text has none of the three forms.
    #[error(
        "{text:?} is no argument: write TYPE:VALUE such as i32:7, buf:TYPE:VALUES such as buf:i32:1,2,3, \
         or zeros:TYPE:COUNT such as zeros:i32:8"
    )]
    Form {
        /// The text.
        text: String,
    },
    /// Not one of the eight types.
    #[error("{text:?} is no type: the types are i8 u8 i16 u16 i32 u32 i64 u64")]
    Type {
        /// The text.
        text: String,
    },
    /// Not a number.
    #[error("{text:?} is no number: write a decimal or 0x number, with - in front if it is negative")]
    Number {
        /// The text.
        text: String,
    },
    /// The value is outside its type.
    #[error("{value} is out of range: {element} holds {min} to {max}")]
    Range {
        /// The value.
        value: i128,
        /// The type.
        element: ElementType,
        /// Its least value.
        min: i128,
        /// Its greatest value.
        max: i128,
    },
    /// A number of elements that no machine has room for.
    #[error("a buffer cannot have {count} elements: write a count from 0 to {max}")]
    Count {
        /// The number.
        count: i128,
        /// Greatest number that is read.
        max: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_those_of_the_types() {
        for (element, min, max) in [
            (ElementType::I8, -128, 127),
            (ElementType::U16, 0, 65535),
            (ElementType::I64, i64::MIN.into(), i64::MAX.into()),
            (ElementType::U64, 0, u64::MAX.into()),
        ] {
            assert_eq!((element.min(), element.max()), (min, max));
            assert!(Scalar::new(element, min).is_ok() && Scalar::new(element, max).is_ok());
            assert!(Scalar::new(element, min - 1).is_err() && Scalar::new(element, max + 1).is_err());
        }
    }

    #[test]
    fn bytes_round_trip() {
        let buffer = Buffer::new(ElementType::I16, [-1, 2, -32768]).expect("in range");
        assert_eq!(buffer.to_bytes(), [255, 255, 2, 0, 0, 128]);
        assert_eq!(buffer.with_bytes(&buffer.to_bytes()), buffer);
        assert_eq!(buffer.to_vec::<i16>(), Some(vec![-1, 2, -32768]));
        assert_eq!(buffer.to_vec::<u16>(), None);
    }

    #[test]
    fn bad_text_is_refused() {
        let parse = |text: &str| text.parse::<Argument>();
        assert!(matches!(parse("7"), Err(ArgumentError::Form { .. })));
        assert!(matches!(parse("buf:i32"), Err(ArgumentError::Form { .. })));
        assert!(matches!(parse("f32:1"), Err(ArgumentError::Type { .. })));
        assert!(matches!(parse("i32:"), Err(ArgumentError::Number { .. })));
        assert!(matches!(parse("i32:--1"), Err(ArgumentError::Number { .. })));
        assert!(matches!(parse("i32:0x"), Err(ArgumentError::Number { .. })));
        assert!(matches!(parse("buf:i32:1,,2"), Err(ArgumentError::Number { .. })));
        assert!(matches!(parse("buf:i8:1,-129"), Err(ArgumentError::Range { value: -129, .. })));
        assert!(matches!(parse("i32:0xffffffff"), Err(ArgumentError::Range { .. })));
        assert!(matches!(parse("zeros:i32:-1"), Err(ArgumentError::Count { .. })));
        assert!(matches!(parse("zeros:i32:99999999999"), Err(ArgumentError::Count { .. })));
    }
}
