//! Addition of eight hexadecimal digits that may still be too large.

use qwengpu_circuit::{Builder, Linear, Signal};

/// Bits of a digit.
pub(crate) const DIGIT: usize = 4;
/// The base of the digits.
pub(crate) const BASE: i64 = 16;
/// Digits of a word.
pub(crate) const DIGITS: usize = 8;

/// The digits of a word, least significant first: `0..=15` each.
pub(crate) fn digits<L: Into<Linear> + Clone>(bits: &[L]) -> Vec<Linear> {
    bits.chunks(DIGIT).map(Linear::from_bits).collect()
}

/// Splits sums at each digit's place into digit and carry: `sum = digit + 16 * carry`, then adds each carry to the next
/// place. The carry out of the top is dropped: arithmetic is modulo 2^32. Sums of at most 79. One MLP level.
pub(crate) fn carry_once(b: &mut Builder, name: &str, sums: &[Linear], largest: i64) -> (Vec<Signal>, Vec<Signal>) {
    let entries: Vec<i64> = (0..=largest).collect();
    let columns = vec![entries.iter().map(|n| n % BASE).collect(), entries.iter().map(|n| n / BASE).collect()];
    sums.iter()
        .enumerate()
        .map(|(place, sum)| {
            let (digit, carry) = (format!("{name}/digit{place}"), format!("{name}/carry{place}"));
            let names = [digit.as_str(), carry.as_str()];
            let outputs = b.table(&names, sum, 0, columns.clone());
            (outputs[0], outputs[1])
        })
        .unzip()
}

/// `digit[place] + carry[place - 1]`.
pub(crate) fn add_carries(digits: &[Signal], carries: &[Signal]) -> Vec<Linear> {
    (0..digits.len())
        .map(|place| if place == 0 { digits[0].into() } else { digits[place] + carries[place - 1] })
        .collect()
}

/// The bits of `sum(16^place * sums[place])` modulo 2^32, for sums of at most `largest <= 30`. Two MLP levels.
///
/// The first finds each digit's bits without and with a carry from below, and whether it generates or would
/// propagate one. Let `s` be +1 for a digit that generates, 0 for one that propagates, -1 for one that does neither
/// (digit 0, with nothing below it, has only +1 and -1). A carry enters a place if the first digit below it that is
/// not 0 is +1, which is the sign of `sum(2^j s_j)`. That sum is odd and at most 127, so half of it, rounded down,
/// decides with a dead zone in an exact bf16.
pub(crate) fn add_digits(b: &mut Builder, name: &str, sums: &[Linear], largest: i64) -> Vec<Linear> {
    let top = sums.len() - 1;
    let mut bits = Vec::new();
    // (carry enters) as a form that is >= 0.
    let mut weighted = Linear::zero();
    for (place, sum) in sums.iter().enumerate() {
        let column = |f: &dyn Fn(i64) -> i64| (0..=largest).map(f).collect::<Vec<_>>();
        let mut names = Vec::new();
        let mut columns = Vec::new();
        for bit in 0..DIGIT {
            names.push(format!("{name}/digit{place}/bit{bit}/alone"));
            columns.push(column(&|n| n >> bit & 1));
            if place > 0 {
                names.push(format!("{name}/digit{place}/bit{bit}/carried"));
                columns.push(column(&|n| (n + 1) >> bit & 1));
            }
        }
        if place < top {
            names.push(format!("{name}/digit{place}/generates"));
            columns.push(column(&|n| i64::from(n >= BASE)));
            if place > 0 {
                names.push(format!("{name}/digit{place}/propagates"));
                columns.push(column(&|n| i64::from(n >= BASE - 1)));
            }
        }
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let outputs = b.table(&names, sum, 0, columns);
        if place == 0 {
            bits.extend(outputs[..DIGIT].iter().map(|&bit| Linear::from(bit)));
            if top > 0 {
                weighted = outputs[DIGIT] - 1;
            }
        } else {
            for (bit, pair) in outputs[..2 * DIGIT].chunks(2).enumerate() {
                let name = format!("{name}/sum/bit{}", place * DIGIT + bit);
                bits.push(b.select(&name, 0..=1, weighted.clone(), pair[1], pair[0]).into());
            }
            if place < top {
                let weight = 1 << (place - 1);
                weighted += (outputs[2 * DIGIT] + outputs[2 * DIGIT + 1] - 1) * weight;
            }
        }
    }
    bits
}
