//! Functions, scopes and statements.

use super::Parser;
use super::directive::Place;
use crate::ast::{Body, BranchTargets, Function, FunctionKind, Linkage, Name, Statement, Tuning, Variable};
use crate::error::Result;
use crate::lexer::Kind;
use crate::subset::is_performance_directive;

impl Parser<'_, '_> {
    pub(super) fn function(&mut self, linkage: Linkage) -> Result<Function> {
        let kind = if self.eat_dotted("entry") {
            FunctionKind::Entry
        } else {
            self.next();
            FunctionKind::Func
        };
        let mut returns = Vec::new();
        if kind == FunctionKind::Func && self.eat("(") {
            returns = self.list(")", Self::parameter)?;
        }
        let name = self.name("a function name")?;
        let params = if self.eat("(") { self.list(")", Self::parameter)? } else { Vec::new() };
        let mut tuning = Vec::new();
        loop {
            if self.skip_directive()? {
                continue;
            }
            if self.peek().kind != Kind::Dotted {
                break;
            }
            tuning.push(self.tuning()?);
        }
        let body = if self.eat(";") {
            None
        } else {
            self.expect("{")?;
            Some(self.nested(Parser::body)?)
        };
        Ok(Function { linkage, kind, returns, name, params, tuning, body })
    }

    fn tuning(&mut self) -> Result<Tuning> {
        if !is_performance_directive(self.peek().text) {
            return Err(self.unexpected("a performance directive, `;` or `{`"));
        }
        let name = self.next().text.to_owned();
        let mut values = Vec::new();
        if matches!(self.peek().kind, Kind::Int(..)) {
            loop {
                values.push(self.constant()?);
                if !self.eat(",") {
                    break;
                }
            }
        }
        Ok(Tuning { name, values })
    }

    fn parameter(&mut self) -> Result<Variable> {
        self.variable(Linkage::Internal, Place::Parameter)
    }

    /// Statements up to and including the closing brace.
    fn body(&mut self) -> Result<Body> {
        let mut body = Vec::new();
        loop {
            if self.eat("}") {
                return Ok(body);
            }
            if self.eat(";") || self.skip_directive()? {
                continue;
            }
            let token = self.peek();
            match token.kind {
                Kind::End => return Err(self.unexpected("`}`")),
                Kind::Punct if token.text == "{" => {
                    self.next();
                    let inner = self.nested(Parser::body)?;
                    body.push(Statement::Block(inner, token.span.to(self.last_span())));
                }
                Kind::Dotted => self.declarations(&mut body)?,
                Kind::Word if self.peek_at(1).text == ":" => {
                    let name = self.name("a label")?;
                    self.next();
                    body.push(self.labelled(name)?);
                }
                _ => body.push(Statement::Instruction(self.instruction()?)),
            }
        }
    }

    /// `.reg .b32 a, b<4>;` and the like: one statement a name.
    fn declarations(&mut self, body: &mut Body) -> Result<()> {
        let linkage = self.linkage();
        let first = self.variable(linkage, Place::Body)?;
        let model = first.clone();
        body.push(Statement::Variable(first));
        while self.eat(",") {
            let name = self.name("a name")?;
            let mut variable = Variable { name, range: None, extents: Vec::new(), ..model.clone() };
            if self.eat("<") {
                let Kind::Int(count, _) = self.peek().kind else {
                    return Err(self.unexpected("a number of registers"));
                };
                let Ok(count) = u32::try_from(count) else {
                    return Err(self.unexpected("fewer than 2^32 registers"));
                };
                self.next();
                variable.range = Some(count);
                self.expect(">")?;
            }
            while self.eat("[") {
                let extent = if self.is("]") { None } else { Some(self.constant()?) };
                self.expect("]")?;
                variable.extents.push(extent);
            }
            body.push(Statement::Variable(variable));
        }
        self.expect(";")?;
        Ok(())
    }

    fn labelled(&mut self, name: Name) -> Result<Statement> {
        if self.eat_dotted("branchtargets") {
            let targets = self.list(";", |p| p.name("a label"))?;
            return Ok(Statement::BranchTargets(BranchTargets { name, targets }));
        }
        if self.eat_dotted("callprototype") || self.eat_dotted("calltargets") {
            while !self.eat(";") {
                if self.peek().kind == Kind::End {
                    return Err(self.unexpected("`;`"));
                }
                self.next();
            }
            return Ok(Statement::CallPrototype(name));
        }
        Ok(Statement::Label(name))
    }
}
