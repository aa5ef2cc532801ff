//! The instruction table of `docs/isa.md` is the one the opcodes give.
//!
//! With `QWENGPU_BLESS=1` the test rewrites it.

use std::fmt::Write as _;
use std::path::Path;

use qwengpu_isa::{Destination, FieldUse, Opcode};

const BEGIN: &str = "<!-- begin instruction table: QWENGPU_BLESS=1 cargo test -p qwengpu-isa --test docs -->\n";
const END: &str = "<!-- end instruction table -->\n";

fn table() -> String {
    let mut table = String::from("| no. | text | rd | ra | rb | rc | meaning |\n|---|---|---|---|---|---|---|\n");
    for op in Opcode::ALL {
        let destination = match op.destination() {
            Destination::None => "",
            Destination::Register => "reg",
            Destination::Predicate => "pred",
        };
        let field = |field_use| match field_use {
            FieldUse::Unused => "",
            FieldUse::Register => "reg",
            FieldUse::Operand => "B",
            FieldUse::Predicate => "pred",
        };
        let fields = op.operand_use();
        // A bar inside code would end the cell of a table.
        let escape = |text: &str| text.replace('|', "\\|");
        let _ = writeln!(
            table,
            "| {} | `{}` | {destination} | {} | {} | {} | {} |",
            op.number(),
            escape(op.syntax()),
            field(fields.a),
            field(fields.b),
            field(fields.c),
            escape(op.equation()),
        );
    }
    table
}

#[test]
fn instruction_table_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/isa.md");
    let text = std::fs::read_to_string(&path).expect("docs/isa.md is readable");
    let begin = text.find(BEGIN).expect("docs/isa.md has the begin mark") + BEGIN.len();
    let end = text.find(END).expect("docs/isa.md has the end mark");
    let expected = format!("\n{}\n", table());
    if text[begin..end] != expected {
        if std::env::var_os("QWENGPU_BLESS").is_some_and(|value| value == "1") {
            std::fs::write(&path, format!("{}{expected}{}", &text[..begin], &text[end..]))
                .expect("docs/isa.md is writable");
        } else {
            assert_eq!(text[begin..end], expected, "docs/isa.md is stale: set QWENGPU_BLESS=1 and run this test again");
        }
    }
}
