//! The text form, and the invariants of the verifier.

use qwengpu_circuit::{
    BIT, Builder, CompileError, CompileOptions, Geometry, Level, Linear, Product, RowChoice, StateDescription, Token,
    compile, verify,
};

/// One of each operation.
fn everything() -> Builder {
    let mut builder = Builder::new();
    let x = builder.input("x", 0..=3);
    let [a, b] = ["a", "b"].map(|name| builder.input(name, BIT));
    builder.exclusive("ab", &[a, b]);
    let low = builder.table(&["low"], x * 2 + a, 0, vec![vec![0, 1, 1, 0]])[0];
    let plain = builder.plain_table(&["plain"], x - b, -1, vec![vec![2, 0, 2]])[0];
    let sum = builder.scope("deep", |builder| {
        let term = |coefficient, gate: Linear, up: Linear| Product { coefficient, gate, up };
        builder.products(
            "sum",
            -3..=6,
            vec![term(2, a + low - 1, Linear::from(x)), term(-1, b.into(), Linear::from(3))],
        )
    });
    let chosen = builder.select("chosen", 0..=2, low - 1, plain, Linear::one());
    let description = StateDescription {
        rows: 2,
        clear: Some(b.into()),
        write: RowChoice::Address { bits: vec![a.into()], enable: low.into() },
        value: vec![a.into(), Linear::from(a).not()],
        level: Level::EveryRow,
    };
    let read = builder.state("rows", description, vec![("get", RowChoice::Rows(vec![a.into(), b.into()]))]).remove(0);
    builder.enumerate(&[x, a, b], &[chosen]);
    for value in 0..=3 {
        builder.token(Token {
            text: format!("T{value}"),
            inputs: vec![(x, value), (a, value & 1)],
            code: vec![(sum, 1), (read[0], -2), (chosen, 3)],
        });
    }
    builder
}

#[test]
fn text_form() {
    insta::assert_snapshot!(everything().finish());
}

#[test]
fn report_as_a_table() {
    let compiled =
        compile(&everything().finish(), &Geometry::new(256, 64, 2, 8), &CompileOptions::default()).expect("compiles");
    insta::assert_snapshot!(compiled.report);
}

/// Breaks an otherwise good netlist in one place; the verifier must name the invariant, and only that.
fn check(invariant: u8, breaks: impl FnOnce(&mut Builder)) {
    let mut builder = everything();
    assert!(verify(&everything().finish()).is_ok());
    breaks(&mut builder);
    let netlist = builder.finish();
    let violations = verify(&netlist).expect_err("broken");
    assert!(violations.iter().all(|violation| violation.invariant == invariant), "{violations:?}");
    let refused = compile(&netlist, &Geometry::new(256, 64, 2, 8), &CompileOptions::default());
    assert!(matches!(refused, Err(CompileError::Netlist(_))));
}

fn state(rows: usize, address: usize, value: Vec<Linear>) -> StateDescription {
    let choice = RowChoice::Address { bits: vec![Linear::zero(); address], enable: Linear::one() };
    StateDescription { rows, clear: None, write: choice, value, level: Level::EveryRow }
}

#[test]
fn names_are_unique() {
    check(1, |builder| {
        builder.input("x", BIT);
    });
    check(2, |builder| drop(builder.state("rows", state(2, 1, vec![Linear::one()]), vec![])));
    check(9, |builder| {
        builder.token(Token { text: "T1".into(), inputs: vec![], code: vec![] });
    });
}

#[test]
fn signals_are_made_before_they_are_used() {
    // A signal of another, longer netlist does not exist here.
    let mut other = everything();
    let foreign = (0..40).map(|i| other.input(&format!("other{i}"), BIT)).last().expect("forty");
    check(3, |builder| {
        builder.step("uses", foreign - 1);
    });
}

#[test]
fn shapes_of_tables_and_states() {
    check(5, |builder| drop(builder.table(&["p", "q"], Linear::one(), 0, vec![vec![0, 1], vec![0]])));
    check(6, |builder| drop(builder.state("empty", state(0, 1, vec![Linear::one()]), vec![])));
    check(6, |builder| drop(builder.state("empty", state(1, 1, vec![]), vec![])));
    check(7, |builder| drop(builder.state("few", state(5, 2, vec![Linear::one()]), vec![])));
}

#[test]
fn tokens_ranges_and_groups() {
    check(8, |builder| {
        let step = builder.step("not_an_input", Linear::one());
        builder.token(Token { text: "new".into(), inputs: vec![(step, 1)], code: vec![] });
    });
    check(8, |builder| {
        let input = builder.input("small", BIT);
        builder.token(Token { text: "new".into(), inputs: vec![(input, 2)], code: vec![] });
    });
    #[expect(clippy::reversed_empty_ranges, reason = "the range is meant to be empty")]
    check(10, |builder| {
        builder.input("nothing", 1..=0);
    });
    check(11, |builder| {
        let wide = builder.input("wide", 0..=2);
        builder.exclusive("wide", &[wide]);
    });
    check(12, |builder| {
        let step = builder.step("said", Linear::one());
        builder.token(Token { text: "new".into(), inputs: vec![], code: vec![(step, 1), (step, 2)] });
    });
}

#[test]
fn netlists_that_do_not_fit() {
    let netlist = everything().finish();
    let compile = |geometry: Geometry| compile(&netlist, &geometry, &CompileOptions::default());
    assert!(matches!(compile(Geometry::new(256, 64, 2, 1)), Err(CompileError::Layers { layers: 1, needed: 2, .. })));
    assert!(compile(Geometry::new(256, 64, 1, 8)).is_ok());
    assert!(matches!(compile(Geometry::new(256, 3, 2, 8)), Err(CompileError::Layers { .. })));
    assert!(matches!(
        compile(Geometry::new(4, 64, 2, 8)),
        Err(CompileError::Inputs { needed: 5.., hidden: 4 } | CompileError::Layers { .. })
    ));
    assert!(matches!(compile(Geometry::new(7, 64, 2, 8)), Err(CompileError::Geometry(_))));
    let mut builder = everything();
    let signal = builder.step("wide", Linear::one());
    let sum = builder.step("uses", signal * 257);
    builder.token(Token { text: "say".into(), inputs: vec![], code: vec![(sum, 1)] });
    let refused =
        qwengpu_circuit::compile(&builder.finish(), &Geometry::new(256, 64, 2, 8), &CompileOptions::default());
    assert!(matches!(refused, Err(CompileError::Weight { value: 1028, .. })), "{refused:?}");
}
