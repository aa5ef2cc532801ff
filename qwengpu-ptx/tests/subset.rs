//! The table of PTX: its document is up to date, what it translates translates, and what it refuses is refused so.
//!
//! With `QWENGPU_BLESS=1` the document is rewritten.

#![allow(clippy::panic, reason = "a failing test panics")]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use qwengpu_ptx::ast::{Body, Item, Module, Opcode, Statement};
use qwengpu_ptx::subset::{
    DIRECTIVES, Feature, INSTRUCTIONS, Instruction, MANUAL, MODIFIERS, PERFORMANCE_DIRECTIVES, SPACES,
    SPECIAL_REGISTERS, Support, TYPES, instruction,
};
use qwengpu_ptx::{LoweredKernel, Options, PtxError, lower, parse};

const REGISTERS: &str = ".reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<4>; .reg .b64 %d<4>;";

fn in_a_body(example: &str) -> String {
    format!(
        ".version 9.4\n.target sm_120a\n.address_size 64\n.func f() {{ ret; }}\n\
         .visible .entry k(.param .u64 p)\n{{\n{REGISTERS}\n{example}\nret;\n}}\n"
    )
}

fn in_a_module(example: &str) -> String {
    format!(
        ".version 9.4\n.target sm_120a\n.address_size 64\n{example}\n.visible .entry k(.param .u64 p)\n{{\nret;\n}}\n"
    )
}

fn translate(ptx: &str) -> Result<LoweredKernel, PtxError> {
    parse(ptx).and_then(|module| lower(&module, Some("k"), &Options::default()))
}

/// What is wrong with a row, if its example does not do what the row says.
fn fault(name: &str, support: Support, ptx: &str) -> Option<String> {
    match (support, translate(ptx)) {
        (Support::Translated(_), Ok(_)) => None,
        (Support::Translated(_), Err(error)) => Some(format!("{name} is not translated: {error}")),
        (Support::Refused(_), Ok(_)) => Some(format!("{name} is not refused")),
        (Support::Refused(refusal), Err(PtxError::Unsupported { reason, .. })) if reason == refusal.reason() => None,
        (Support::Refused(_), Err(error)) => Some(format!("{name} is refused for another reason: {error}")),
    }
}

fn opcodes<'m>(body: &'m Body, found: &mut Vec<&'m Opcode>) {
    for statement in body {
        match statement {
            Statement::Instruction(inst) => found.push(&inst.opcode),
            Statement::Block(inner, _) => opcodes(inner, found),
            _ => {}
        }
    }
}

fn opcodes_of(module: &Module) -> Vec<&Opcode> {
    let mut found = Vec::new();
    for item in &module.items {
        if let Item::Function(function) = item
            && let Some(body) = &function.body
        {
            opcodes(body, &mut found);
        }
    }
    found
}

fn rows() -> impl Iterator<Item = &'static Instruction> {
    INSTRUCTIONS.iter().copied().flatten()
}

#[test]
fn every_instruction_is_translated_or_refused_as_the_table_says() {
    let faults: Vec<String> =
        rows().filter_map(|row| fault(&row.title(), row.support, &in_a_body(row.example))).collect();
    assert_eq!(faults, Vec::<String>::new());
}

#[test]
fn every_row_is_the_row_of_its_example() {
    for row in rows() {
        let module = parse(&in_a_body(row.example)).unwrap_or_else(|e| panic!("{}: {e}", row.title()));
        let opcodes = opcodes_of(&module);
        let found = opcodes.iter().find(|opcode| opcode.name.text == row.name).and_then(|opcode| instruction(opcode));
        assert_eq!(found.map(Instruction::title), Some(row.title()));
    }
}

#[test]
fn no_two_rows_are_of_one_form() {
    let titles: BTreeSet<String> = rows().map(Instruction::title).collect();
    assert_eq!(titles.len(), rows().count());
}

#[test]
fn everything_else_is_translated_or_refused_as_the_table_says() {
    let mut faults = Vec::new();
    for row in SPECIAL_REGISTERS.iter().chain(SPACES).chain(TYPES).chain(MODIFIERS) {
        faults.extend(fault(row.name, row.support, &in_a_body(row.example)));
    }
    for row in DIRECTIVES.iter().chain(PERFORMANCE_DIRECTIVES) {
        let of_a_body = row.example.contains(": .");
        let ptx = if of_a_body { in_a_body(row.example) } else { in_a_module(row.example) };
        faults.extend(fault(row.name, row.support, &ptx));
    }
    assert_eq!(faults, Vec::<String>::new());
}

#[test]
fn a_wrong_row_is_found() {
    let add = rows().find(|row| row.name == "add").expect("there is `add`");
    let fma = rows().find(|row| row.name == "fma").expect("there is `fma`");
    assert!(fault("add", fma.support, &in_a_body(add.example)).is_some_and(|text| text.contains("is not refused")));
    assert!(fault("fma", add.support, &in_a_body(fma.example)).is_some_and(|text| text.contains("is not translated")));
    let tex = rows().find(|row| row.name == "tex").expect("there is `tex`");
    assert!(fault("fma", tex.support, &in_a_body(fma.example)).is_some_and(|text| text.contains("another reason")));
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn support_cells(support: Support) -> String {
    match support {
        Support::Translated(what) => format!("yes | {}", cell(what)),
        Support::Refused(refusal) => format!("no | {}; {}", cell(refusal.is), cell(refusal.instead)),
    }
}

fn section(text: &mut String, title: &str, lead: &str, rows: impl Iterator<Item = (String, &'static str, Support)>) {
    let _ = write!(text, "## {title}\n\n");
    if !lead.is_empty() {
        let _ = write!(text, "{lead}\n\n");
    }
    text.push_str("| | section | | types, modifiers, effect; or why not, and what instead |\n|---|---|---|---|\n");
    for (name, section, support) in rows {
        let _ = writeln!(text, "| `{}` | {section} | {} |", cell(&name), support_cells(support));
    }
    text.push('\n');
}

fn features(rows: &'static [Feature]) -> impl Iterator<Item = (String, &'static str, Support)> {
    rows.iter().map(|row| (row.name.to_owned(), row.section, row.support))
}

fn document() -> String {
    let translated = rows().filter(|row| matches!(row.support, Support::Translated(_))).count();
    let mut text = format!(
        "# PTX, row by row\n\n\
         What `qwengpu-ptx` translates of PTX, and why it refuses the rest.\n\
         Sections are those of {MANUAL}. [ptx.md](ptx.md) says how.\n\n\
         This file is generated from the table that the compiler itself uses, `qwengpu-ptx/src/subset`:\n\
         `QWENGPU_BLESS=1 cargo test -p qwengpu-ptx --test subset` writes it.\n\n\
         Of {} instructions, {translated} are translated.\n\n",
        rows().count()
    );
    let lead = "A form with words in its name takes them anywhere among its modifiers.";
    section(&mut text, "Instructions", lead, rows().map(|row| (row.title(), row.section, row.support)));
    section(&mut text, "Special registers", "`#` stands for a number.", features(SPECIAL_REGISTERS));
    section(&mut text, "State spaces", "", features(SPACES));
    section(&mut text, "Types", "", features(TYPES));
    section(&mut text, "Modifiers of accesses to memory", "`*` stands for any word.", features(MODIFIERS));
    let directives = features(DIRECTIVES).chain(features(PERFORMANCE_DIRECTIVES));
    section(&mut text, "Directives", "", directives);
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

#[test]
fn the_document_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/ptx-subset.md");
    let expected = document();
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    if text == expected {
        return;
    }
    if std::env::var_os("QWENGPU_BLESS").is_some_and(|value| value == "1") {
        std::fs::write(&path, expected).expect("docs/ptx-subset.md is writable");
    } else {
        panic!("docs/ptx-subset.md is stale: set QWENGPU_BLESS=1 and run this test again");
    }
}
