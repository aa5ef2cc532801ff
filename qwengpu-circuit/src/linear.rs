//! Integer linear forms over signals: the currency of the netlist.

use std::collections::BTreeMap;
use std::ops::{Add, AddAssign, Mul, Neg, Sub, SubAssign};

use crate::ir::Signal;

/// `constant + sum(coefficient * signal)`, all integers.
///
/// A linear form costs nothing by itself: it becomes a row of a projection matrix where it is used.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Linear {
    constant: i64,
    terms: BTreeMap<Signal, i64>,
}

impl Linear {
    /// The form that is always zero.
    #[must_use]
    pub fn zero() -> Self {
        Self::default()
    }

    /// The form that is always one.
    #[must_use]
    pub fn one() -> Self {
        Self::from(1)
    }

    /// The constant part.
    #[must_use]
    pub fn constant(&self) -> i64 {
        self.constant
    }

    /// Signals with their non-zero coefficients, in signal order.
    pub fn terms(&self) -> impl ExactSizeIterator<Item = (Signal, i64)> + '_ {
        self.terms.iter().map(|(&signal, &coefficient)| (signal, coefficient))
    }

    /// Whether no signal takes part.
    #[must_use]
    pub fn is_constant(&self) -> bool {
        self.terms.is_empty()
    }

    /// Adds `coefficient * signal`.
    pub fn add_term(&mut self, signal: Signal, coefficient: i64) {
        let entry = self.terms.entry(signal).or_insert(0);
        *entry += coefficient;
        if *entry == 0 {
            self.terms.remove(&signal);
        }
    }

    /// The value for given signal values.
    pub fn evaluate(&self, value: impl Fn(Signal) -> i64) -> i64 {
        self.terms.iter().fold(self.constant, |sum, (&signal, &coefficient)| sum + coefficient * value(signal))
    }

    /// `sum(2^i * bits[i])`, least significant bit first.
    pub fn from_bits<L: Into<Linear> + Clone>(bits: &[L]) -> Self {
        bits.iter().enumerate().fold(Self::zero(), |sum, (i, bit)| sum + bit.clone().into() * (1_i64 << i))
    }

    /// The sum of all forms.
    pub fn sum<L: Into<Linear>>(forms: impl IntoIterator<Item = L>) -> Self {
        forms.into_iter().fold(Self::zero(), |sum, form| sum + form.into())
    }

    /// `1 - self`: the complement of a bit.
    #[must_use]
    pub fn not(&self) -> Self {
        Self::one() - self.clone()
    }
}

impl From<i64> for Linear {
    fn from(constant: i64) -> Self {
        Self { constant, terms: BTreeMap::new() }
    }
}

impl From<Signal> for Linear {
    fn from(signal: Signal) -> Self {
        Self { constant: 0, terms: BTreeMap::from([(signal, 1)]) }
    }
}

impl From<&Linear> for Linear {
    fn from(form: &Linear) -> Self {
        form.clone()
    }
}

impl<R: Into<Linear>> AddAssign<R> for Linear {
    fn add_assign(&mut self, other: R) {
        let other = other.into();
        self.constant += other.constant;
        for (signal, coefficient) in other.terms {
            self.add_term(signal, coefficient);
        }
    }
}

impl<R: Into<Linear>> SubAssign<R> for Linear {
    fn sub_assign(&mut self, other: R) {
        *self += -other.into();
    }
}

impl<R: Into<Linear>> Add<R> for Linear {
    type Output = Linear;
    fn add(mut self, other: R) -> Linear {
        self += other;
        self
    }
}

impl<R: Into<Linear>> Sub<R> for Linear {
    type Output = Linear;
    fn sub(mut self, other: R) -> Linear {
        self -= other;
        self
    }
}

impl Mul<i64> for Linear {
    type Output = Linear;
    fn mul(self, factor: i64) -> Linear {
        if factor == 0 {
            return Linear::zero();
        }
        Linear {
            constant: self.constant * factor,
            terms: self.terms.into_iter().map(|(signal, coefficient)| (signal, coefficient * factor)).collect(),
        }
    }
}

impl Neg for Linear {
    type Output = Linear;
    fn neg(self) -> Linear {
        self * -1
    }
}

impl<R: Into<Linear>> Add<R> for Signal {
    type Output = Linear;
    fn add(self, other: R) -> Linear {
        Linear::from(self) + other
    }
}

impl<R: Into<Linear>> Sub<R> for Signal {
    type Output = Linear;
    fn sub(self, other: R) -> Linear {
        Linear::from(self) - other
    }
}

impl Mul<i64> for Signal {
    type Output = Linear;
    fn mul(self, factor: i64) -> Linear {
        Linear::from(self) * factor
    }
}
