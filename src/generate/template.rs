//! A checkpoint's chat template: messages to the text that the model goes on from.

use minijinja::{Environment, Error as TemplateError, ErrorKind, context};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a template is not allowed to do in its loops, in instructions of the template engine.
const FUEL: u64 = 10_000_000;

/// A message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// `system`, `user` or `assistant`.
    pub role: String,
    /// The text.
    pub content: String,
}

impl Message {
    /// A message.
    #[must_use]
    pub fn new(role: &str, content: &str) -> Self {
        Self { role: role.to_owned(), content: content.to_owned() }
    }
}

/// A template in the language of Jinja, as Hugging Face's tokenizers carry it.
#[derive(Debug, Clone)]
pub struct ChatTemplate {
    source: String,
    /// Names of special tokens, such as `eos_token`, with their texts.
    specials: Vec<(String, String)>,
}

impl ChatTemplate {
    /// Takes the template of a `tokenizer_config.json`, or of a `chat_template.jinja` where there is one.
    ///
    /// `None` if neither has one.
    #[must_use]
    pub fn new(tokenizer_config: &Value, file: Option<String>) -> Option<Self> {
        let named = |templates: &[Value]| {
            let default = templates.iter().find(|template| template["name"] == "default").or(templates.first())?;
            default["template"].as_str().map(str::to_owned)
        };
        let inside = match &tokenizer_config["chat_template"] {
            Value::String(text) => Some(text.clone()),
            Value::Array(templates) => named(templates),
            _ => None,
        };
        let specials = ["bos_token", "eos_token", "pad_token", "unk_token"].into_iter().filter_map(|name| {
            let token = &tokenizer_config[name];
            let text = token.as_str().or_else(|| token["content"].as_str())?;
            Some((name.to_owned(), text.to_owned()))
        });
        Some(Self { source: file.or(inside)?, specials: specials.collect() })
    }

    /// The text of a conversation, with the beginning of an answer.
    ///
    /// # Errors
    /// If the template is invalid or refuses the messages.
    pub fn render(&self, messages: &[Message]) -> Result<String, TemplateError> {
        let mut environment = Environment::new();
        environment.set_trim_blocks(true);
        environment.set_lstrip_blocks(true);
        environment.set_fuel(Some(FUEL));
        // Templates are written for Python's strings: startswith, split and the like.
        environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_function("raise_exception", |message: String| -> Result<(), TemplateError> {
            Err(TemplateError::new(ErrorKind::InvalidOperation, message))
        });
        for (name, text) in &self.specials {
            environment.add_global(name.clone(), text.clone());
        }
        environment.add_template("chat", &self.source)?;
        environment.get_template("chat")?.render(context! { messages, add_generation_prompt => true })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const CHATML: &str = "{%- for message in messages %}\n    {{- '<s>' + message.role + '\\n' + message.content.strip() + eos_token }}\n{%- endfor %}\n{%- if add_generation_prompt %}{{- '<s>assistant\\n' }}{%- endif %}";

    fn render(config: &Value, messages: &[Message]) -> Result<String, String> {
        let template = ChatTemplate::new(config, None).ok_or("no template")?;
        template.render(messages).map_err(|error| error.to_string())
    }

    #[test]
    fn messages_become_text() {
        let messages = [Message::new("user", " Hi "), Message::new("assistant", "Hello")];
        let expected = "<s>user\nHi</s><s>assistant\nHello</s><s>assistant\n";
        let token = json!({ "chat_template": CHATML, "eos_token": "</s>" });
        assert_eq!(render(&token, &messages).as_deref(), Ok(expected));
        let templates = json!([{ "name": "tools", "template": "no" }, { "name": "default", "template": CHATML }]);
        let named = json!({ "chat_template": templates, "eos_token": { "content": "</s>" } });
        assert_eq!(render(&named, &messages).as_deref(), Ok(expected));
        assert!(ChatTemplate::new(&json!({}), None).is_none());
        assert!(ChatTemplate::new(&json!({}), Some("x".to_owned())).is_some());
    }

    /// What templates of released models make use of.
    #[test]
    fn idioms_of_python_are_known() {
        let source = "{%- set ns = namespace(last=-1) %}\
            {%- for message in messages[::-1] %}{%- set index = (messages|length - 1) - loop.index0 %}\
            {%- if ns.last < 0 and message.role == 'user' and message.content is string %}{%- set ns.last = index %}\
            {%- endif %}{%- endfor %}{{- ns.last }}|\
            {%- macro text(content) %}{%- if content is string %}{{- content }}{%- else %}{{- content|tojson }}{%- endif %}\
            {%- endmacro %}{{- text(messages[0].content).split('</think>')[-1].lstrip('\\n').rstrip() }}|\
            {%- if tools %}tools{%- endif %}{%- if enable_thinking is defined and enable_thinking is false %}no{%- endif %}\
            {{- messages[0].content.startswith('a') }}|{{- messages[-1]['content']|trim }}";
        let messages = [Message::new("user", "a</think>\nb "), Message::new("assistant", " c ")];
        let said = render(&json!({ "chat_template": source }), &messages);
        assert_eq!(said.map(|text| text.to_lowercase()).as_deref(), Ok("0|b|true|c"));
    }

    #[test]
    fn a_template_may_refuse_but_not_run_for_ever() {
        let refusing = json!({ "chat_template": "{{ raise_exception('no system message') }}" });
        let said = render(&refusing, &[]).expect_err("refused");
        assert!(said.contains("no system message"), "{said}");
        let endless = "{% for a in range(9999) %}{% for b in range(9999) %}{{ a * b }}{% endfor %}{% endfor %}";
        assert!(render(&json!({ "chat_template": endless }), &[]).is_err());
        assert!(render(&json!({ "chat_template": "{% if %}" }), &[]).is_err());
    }
}
