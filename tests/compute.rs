//! Expressions and calls: their results, and what is refused.

#![allow(clippy::panic, reason = "a failing test panics")]

use qwengpu::language::{Answer, ComputeError, ComputeOptions, PRESETS, Status, compute};
use qwengpu::{EngineKind, Gpu};

const LIMIT: usize = 200_000;

fn ask(gpu: &mut Gpu, text: &str, max_tokens: usize, check: bool) -> Result<Answer, ComputeError> {
    compute(gpu, text, ComputeOptions { max_tokens, check }, &mut |_| ())
}

/// Texts and results, as Python's integers give them (with C's `/` and `%`).
const RESULTS: &[(&str, &str)] = &[
    ("7", "7"),
    ("12 * (3 + 4)", "84"),
    ("2+3*4-5", "9"),
    ("10 - 3 - 2", "5"),
    ("100 / 7 / 2", "7"),
    ("(17 % 5) ** 3", "8"),
    ("-2 ** 2", "-4"),
    ("(-2) ^ 3", "-8"),
    ("2 ** 3 ** 2", "512"),
    ("-7 / 2", "-3"),
    ("-7 % 2", "-1"),
    ("9223372036854775807 - 1", "9223372036854775806"),
    ("-9223372036854775807 - 1", "-9223372036854775808"),
    ("3037000499 * 3037000499", "9223372030926249001"),
    ("4294967296 * -2147483648", "-9223372036854775808"),
    ("2 ** 62", "4611686018427387904"),
    ("(-1) ** 1000001", "-1"),
    ("1 ** 9000000000000000000", "1"),
    ("0 ** 0", "1"),
    ("0 ** 5", "0"),
    ("1000000 // 7", "142857"),
    ("sum(3, 5, 9)", "17"),
    ("sum([3, 5, -9])", "-1"),
    ("product(3, -5, 9)", "-135"),
    ("product(4294967296, 2147483647)", "9223372032559808512"),
    ("min(3, -5, 9)", "-5"),
    ("max(3, 5000000000, 9)", "5000000000"),
    ("mean(3, 5, 9)", "5 remainder 2"),
    ("mean(-3, -5, -9)", "-6 remainder 1"),
    ("sort(9, -3, 5, 5, 0)", "[-3, 0, 5, 5, 9]"),
    ("count([3, 5, 3, 30], 3)", "2"),
    ("gcd(48, 36, 30)", "6"),
    ("gcd(0, -7)", "7"),
    ("lcm(4, 6, 10)", "60"),
    ("lcm(4, 0)", "0"),
    ("dot([1, 2], [3, -4])", "-5"),
    ("powmod(7, 100, 13)", "9"),
    ("powmod(-2, 3, 65536)", "65528"),
    ("powmod(65535, 2, 65536)", "1"),
    ("powmod(5, 0, 1)", "0"),
    ("factmod(20, 1009)", "649"),
    ("fib(0)", "0"),
    ("fib(92)", "7540113804746346429"),
    ("isprime(97)", "1"),
    ("isprime(2)", "1"),
    ("isprime(9409)", "0"),
    ("isprime(-7)", "0"),
    ("digits(90210)", "[9, 0, 2, 1, 0]"),
    ("digits(0)", "[0]"),
    ("digits(9223372036854775807)", "[9, 2, 2, 3, 3, 7, 2, 0, 3, 6, 8, 5, 4, 7, 7, 5, 8, 0, 7]"),
    ("matmul([[1, 2], [3, 4]], [[5], [6]])", "[[17], [39]]"),
];

/// Texts whose result the GPU itself refuses.
const WITHOUT_RESULT: &[(&str, Status)] = &[
    ("9223372036854775807 + 1", Status::Overflow),
    ("-9223372036854775807 - 2", Status::Overflow),
    ("3037000500 * 3037000500", Status::Overflow),
    ("2 ** 63", Status::Overflow),
    ("(-9223372036854775807 - 1) / -1", Status::Overflow),
    ("1 / 0", Status::ZeroDivision),
    ("5 % (3 - 3)", Status::ZeroDivision),
    ("2 ** -1", Status::Range),
    ("sum(9223372036854775807, 1)", Status::Overflow),
    ("product(3037000500, 3037000500)", Status::Overflow),
    ("lcm(4000000007, 4000000009)", Status::Overflow),
    ("dot([9223372036854775807], [2])", Status::Overflow),
    ("powmod(2, 3, 0)", Status::ZeroDivision),
    ("powmod(2, 3, 65537)", Status::Range),
    ("factmod(-1, 5)", Status::Range),
    ("fib(93)", Status::Overflow),
    ("isprime(2147483648)", Status::Range),
];

/// Texts that are no questions, and a part of what is said.
const REFUSED: &[(&str, &str)] = &[
    ("", "column 1: expected a number or `(`, found the end"),
    ("2 +", "found the end"),
    ("(2 + 3", "expected an operator or `)`"),
    ("2 3", "column 3: expected an operator or the end, found '3'"),
    ("x + 1", "expected a number or `(`, found 'x'"),
    ("9223372036854775808", "column 1: the number has more than 63 bits"),
    ("1+1+1+1+1+1+1+1+1+1", "more than 8 operations"),
    ("((((((((((((((((((1))))))))))))))))))", "more than 16 levels"),
    ("root(2)", "there is no function root; there are sum, product"),
    ("gcd()", "column 5: expected a number or a list"),
    ("gcd(1, 2", "expected `,` or the closing bracket"),
    ("gcd(1, 2) + 1", "expected the end"),
    ("fib(1, 2)", "fib takes 1 numbers, as in fib(50)"),
    ("dot([1], [1, 2])", "dot takes two lists"),
    ("matmul([[1, 2]], [[1, 2]])", "that fit together"),
    ("sum(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)", "1 to 18 numbers"),
];

#[test]
fn results_on_the_interpreter() {
    let mut gpu = Gpu::new(EngineKind::Interp).expect("an interpreter");
    for (text, expected) in RESULTS {
        let answer = ask(&mut gpu, text, LIMIT, false).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(answer.text, *expected, "{text}");
    }
    for (text, expected) in WITHOUT_RESULT {
        match ask(&mut gpu, text, LIMIT, false) {
            Err(ComputeError::Status { status, .. }) => assert_eq!(status, *expected, "{text}"),
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn refusals_say_what_is_wrong() {
    let mut gpu = Gpu::new(EngineKind::Interp).expect("an interpreter");
    for (text, expected) in REFUSED {
        let error = ask(&mut gpu, text, LIMIT, false).expect_err(text).to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
    let limit = ask(&mut gpu, "fib(90)", 50, false).expect_err("too few tokens").to_string();
    assert!(limit.contains("has not ended after 50 records"), "{limit}");
}

#[test]
fn compiled_weights_give_the_same() {
    let mut gpu = Gpu::new(EngineKind::Sparse).expect("the machine compiles");
    for (text, expected) in [("12 * (3 + 4)", "84"), ("(100 - 9) % 8", "3"), ("sort(9, -3, 5)", "[-3, 5, 9]")] {
        let answer = ask(&mut gpu, text, LIMIT, true).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(answer.text, expected, "{text}");
    }
}

#[test]
fn every_preset_has_an_example_that_runs() {
    let mut gpu = Gpu::new(EngineKind::Interp).expect("an interpreter");
    for preset in PRESETS {
        let answer = ask(&mut gpu, preset.example, LIMIT, false);
        assert!(answer.is_ok_and(|answer| !answer.text.is_empty()), "{}", preset.example);
    }
}
