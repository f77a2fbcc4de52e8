//! One JSON object with `schema_version`, written field by field.

use serde::Serialize;

/// The object in the making.
pub struct Fields(String);

impl Fields {
    pub fn new() -> Self {
        Self(String::from("{\"schema_version\":1"))
    }

    /// The answer of an operation.
    pub fn of_answer(answer: &impl Serialize) -> Self {
        let text = serde_json::to_string(answer).expect("answers have text keys");
        let fields = text
            .strip_prefix('{')
            .and_then(|text| text.strip_suffix('}'));
        let mut object = Self::new();
        if let Some(fields) = fields.filter(|fields| !fields.is_empty()) {
            object.0.push(',');
            object.0.push_str(fields);
        }
        object
    }

    /// An object that somebody else made.
    pub fn of(object: &serde_json::Map<String, serde_json::Value>) -> Self {
        let mut text = serde_json::to_string(object).expect("answers have text keys");
        text.pop();
        Self(text)
    }

    /// The same with one more field.
    pub fn with(mut self, name: &str, value: &(impl Serialize + ?Sized)) -> Self {
        let value = serde_json::to_string(value).expect("answers have text keys");
        self.0.push_str(&format!(",\"{name}\":{value}"));
        self
    }

    pub fn finish(mut self) -> String {
        self.0.push('}');
        self.0
    }
}
