//! What the assembler refuses, and how it says so.

use qwengpu_isa::{AsmErrorKind, assemble};

#[test]
fn errors_show_their_place() {
    let source = include_str!("errors.asm");
    let errors = assemble(source).expect_err("has errors");
    // One error a line: the number of lines that are not empty and no comment.
    let faulty = source.lines().filter(|line| !line.trim().is_empty() && !line.starts_with("//"));
    assert_eq!(errors.errors.len(), faulty.count());
    insta::assert_snapshot!("errors", errors.render(source));
}

#[test]
fn one_error_does_not_hide_the_next_line() {
    let errors = assemble("iadd r1\n\niadd r1, r2, 99999999999\nbra nowhere\n").expect_err("has errors").errors;
    let starts: Vec<usize> = errors.iter().map(|error| error.span.start).collect();
    assert_eq!(starts, [7, 22, 38]);
    assert!(matches!(&errors[2].kind, AsmErrorKind::UndefinedLabel { name } if name == "nowhere"));
}

#[test]
fn a_text_without_instructions_is_an_empty_program() {
    let program = assemble("// nothing\n\n").expect("assembles");
    assert_eq!(program.instructions, []);
    assert_eq!(program.to_string(), "");
}

#[test]
fn offsets_and_indices_at_the_limits() {
    assert!(assemble("ld.b32 r1, [r1 + 8388607]").is_ok());
    assert!(assemble("ld.b32 r1, [r1 + 8388608]").is_err());
    assert!(assemble("ld.b32 r1, [r1 - 8388608]").is_ok());
    assert!(assemble("ld.b32 r1, [r1 - 8388609]").is_err());
    assert!(assemble("bra 65535").is_ok());
    assert!(assemble("bra 65536").is_err());
    let long = "exit\n".repeat(65536);
    assert!(assemble(&long).is_ok());
    assert!(assemble(&format!("{long}exit")).is_err());
}
