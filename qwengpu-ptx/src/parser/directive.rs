//! Module level: headers, variables, and the directives that carry no code.

use super::Parser;
use crate::ast::{InitialValue, Item, Linkage, Module, Name, PointerAttribute, ScalarType, StateSpace, Variable};
use crate::error::{PtxError, Result};
use crate::lexer::Kind;
use crate::subset::refused_declaration;

/// Where a variable is declared, which decides what may follow its name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Module,
    Body,
    Parameter,
}

impl Parser<'_, '_> {
    pub(super) fn module(&mut self) -> Result<Module> {
        let mut module = Module { version: String::new(), target: Vec::new(), address_size: 32, items: Vec::new() };
        if !self.is_dotted("version") {
            return Err(self.unexpected("`.version`"));
        }
        while self.peek().kind != Kind::End {
            if self.eat(";") || self.skip_directive()? {
                continue;
            }
            if self.eat_dotted("version") {
                if !matches!(self.peek().kind, Kind::Decimal | Kind::Int(..)) {
                    return Err(self.unexpected("a version number"));
                }
                module.version = self.next().text.to_owned();
            } else if self.eat_dotted("target") {
                loop {
                    module.target.push(self.name("a target")?.text);
                    if !self.eat(",") {
                        break;
                    }
                }
            } else if self.eat_dotted("address_size") {
                module.address_size = match self.constant()? {
                    32 => 32,
                    64 => 64,
                    _ => return Err(self.unexpected("address size 32 or 64")),
                };
            } else {
                module.items.push(self.item()?);
            }
        }
        if module.target.is_empty() {
            return Err(self.unexpected("`.target`"));
        }
        Ok(module)
    }

    fn item(&mut self) -> Result<Item> {
        let linkage = self.linkage();
        if self.is_dotted("entry") || self.is_dotted("func") {
            return Ok(Item::Function(self.function(linkage)?));
        }
        let variable = self.variable(linkage, Place::Module)?;
        self.expect(";")?;
        Ok(Item::Variable(variable))
    }

    pub(super) fn linkage(&mut self) -> Linkage {
        for (text, linkage) in [
            ("visible", Linkage::Visible),
            ("extern", Linkage::Extern),
            ("weak", Linkage::Weak),
            ("common", Linkage::Common),
        ] {
            if self.eat_dotted(text) {
                return linkage;
            }
        }
        Linkage::Internal
    }

    /// Skips a directive that carries no code: debugging lines, sections, pragmas, aliases.
    pub(super) fn skip_directive(&mut self) -> Result<bool> {
        let token = self.peek();
        let line = token.span.line;
        if token.kind == Kind::Punct && token.text == "@" && self.peek_at(1).text == "@" {
            self.skip_line(line);
            return Ok(true);
        }
        if token.kind != Kind::Dotted {
            return Ok(false);
        }
        match token.text {
            "loc" | "file" => self.skip_line(line),
            "section" => {
                self.next();
                while !self.is("{") {
                    if !matches!(self.peek().kind, Kind::Dotted | Kind::Word) {
                        return Err(self.unexpected("`{`"));
                    }
                    self.next();
                }
                while !self.eat("}") {
                    if self.peek().kind == Kind::End {
                        return Err(self.unexpected("`}`"));
                    }
                    self.next();
                }
            }
            "pragma" | "alias" => {
                while !self.eat(";") {
                    if self.peek().kind == Kind::End {
                        return Err(self.unexpected("`;`"));
                    }
                    self.next();
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn skip_line(&mut self, line: u32) {
        while self.peek().kind != Kind::End && self.peek().span.line == line {
            self.next();
        }
    }

    /// A variable up to, not including, what follows it.
    pub(super) fn variable(&mut self, linkage: Linkage, place: Place) -> Result<Variable> {
        let space = match StateSpace::from_name(self.peek().text) {
            Some(space) if self.peek().kind == Kind::Dotted => space,
            _ => {
                return Err(self.undeclarable(match place {
                    Place::Module => "a directive, a function or a variable",
                    Place::Body => "a variable, a label or an instruction",
                    Place::Parameter => "a parameter",
                }));
            }
        };
        self.next();
        let mut variable = Variable {
            linkage,
            space,
            align: None,
            vector: None,
            ty: ScalarType::B32,
            pointer: None,
            name: Name { text: String::new(), span: self.peek().span },
            range: None,
            extents: Vec::new(),
            init: Vec::new(),
        };
        self.variable_type(&mut variable)?;
        variable.name = self.name("a name")?;
        if space == StateSpace::Reg && self.eat("<") {
            variable.range = Some(self.register_count()?);
            self.expect(">")?;
        }
        while self.eat("[") {
            let extent = if self.is("]") { None } else { Some(self.constant()?) };
            self.expect("]")?;
            variable.extents.push(extent);
        }
        if place == Place::Module && self.eat("=") {
            self.initialiser(&mut variable.init)?;
        }
        Ok(variable)
    }

    fn register_count(&mut self) -> Result<u32> {
        // Not a full expression: `>` closes the count.
        match self.peek().kind {
            Kind::Int(count, _) => match u32::try_from(count) {
                Ok(count) => {
                    self.next();
                    Ok(count)
                }
                Err(_) => Err(self.unexpected("fewer than 2^32 registers")),
            },
            _ => Err(self.unexpected("a number of registers")),
        }
    }

    fn variable_type(&mut self, variable: &mut Variable) -> Result<()> {
        let mut typed = false;
        while self.peek().kind == Kind::Dotted {
            let text = self.peek().text;
            if text == "align" {
                self.next();
                variable.align = Some(self.constant()?);
            } else if matches!(text, "v2" | "v4") {
                self.next();
                variable.vector = Some(if text == "v2" { 2 } else { 4 });
            } else if let Some(ty) = ScalarType::from_name(text) {
                self.next();
                variable.ty = ty;
                typed = true;
            } else if text == "ptr" {
                self.next();
                variable.pointer = Some(self.pointer_attribute()?);
            } else if text.starts_with("attribute") {
                self.next();
                self.expect("(")?;
                while !self.eat(")") {
                    if self.peek().kind == Kind::End {
                        return Err(self.unexpected("`)`"));
                    }
                    self.next();
                }
            } else {
                break;
            }
        }
        if typed { Ok(()) } else { Err(self.undeclarable("a type")) }
    }

    /// The error at a word that begins no declaration here.
    fn undeclarable(&self, expected: &str) -> PtxError {
        let token = self.peek();
        let refusal = (token.kind == Kind::Dotted).then(|| refused_declaration(token.text)).flatten();
        match refusal {
            Some(refusal) => PtxError::unsupported(token.span, format!(".{}", token.text), refusal.reason()),
            None => self.unexpected(expected),
        }
    }

    fn pointer_attribute(&mut self) -> Result<PointerAttribute> {
        let mut pointer = PointerAttribute { space: None, align: None };
        while self.peek().kind == Kind::Dotted {
            if self.eat_dotted("align") {
                pointer.align = Some(self.constant()?);
            } else if let Some(space) = StateSpace::from_name(self.peek().text) {
                self.next();
                pointer.space = Some(space);
            } else {
                break;
            }
        }
        Ok(pointer)
    }

    fn initialiser(&mut self, values: &mut Vec<InitialValue>) -> Result<()> {
        if self.eat("{") {
            if self.eat("}") {
                return Ok(());
            }
            return self.nested(|p| {
                loop {
                    p.initialiser(values)?;
                    if p.eat("}") {
                        return Ok(());
                    }
                    if !p.eat(",") {
                        return Err(p.unexpected("`,` or `}`"));
                    }
                }
            });
        }
        let token = self.peek();
        let value = match token.kind {
            Kind::Float32(bits) => {
                self.next();
                InitialValue::Bits(u64::from(bits))
            }
            Kind::Float64(bits) => {
                self.next();
                InitialValue::Bits(bits)
            }
            Kind::Word if token.text == "generic" && self.peek_at(1).text == "(" => {
                self.next();
                self.next();
                let value = self.symbol_address()?;
                self.expect(")")?;
                value
            }
            Kind::Word if token.text != "WARP_SZ" => self.symbol_address()?,
            _ => InitialValue::Bits(self.constant()?),
        };
        values.push(value);
        Ok(())
    }

    fn symbol_address(&mut self) -> Result<InitialValue> {
        let name = self.name("a variable")?;
        let negative = self.is("-");
        let offset = if negative || self.is("+") {
            self.next();
            let offset = self.signed_offset()?;
            if negative { offset.wrapping_neg() } else { offset }
        } else {
            0
        };
        Ok(InitialValue::Address(name, offset))
    }
}
