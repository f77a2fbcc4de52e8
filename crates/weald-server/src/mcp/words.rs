//! Words that come from what a model wrote: nothing it writes is ever taken for a flag, and all of it can be passed on.

use serde_json::Value;

use crate::broker::Fault;

/// The longest word that a process can be started with, in bytes.
const LONGEST: usize = (128 << 10) - 1;

/// Refuses text that is too long, or that no process could be started with.
pub fn fit_text(text: &str) -> Result<(), Fault> {
    if text.len() > LONGEST {
        return Err(too_long(text.len()));
    }
    match text.contains('\0') {
        true => Err(
            Fault::new("bad_arguments", 2, "an argument contains a NUL byte")
                .hint("leave it out; text has no NUL"),
        ),
        false => Ok(()),
    }
}

/// Refuses a request with such text.
pub fn fit(value: &Value) -> Result<(), Fault> {
    match value {
        Value::String(text) => fit_text(text),
        Value::Array(items) => items.iter().try_for_each(fit),
        Value::Object(fields) => fields.values().try_for_each(fit),
        _ => Ok(()),
    }
}

/// The refusal of what is too long for a command line.
pub fn too_long(length: usize) -> Fault {
    let message = format!("an argument has {length} bytes, and at most {LONGEST} can be passed");
    Fault::new("argument_too_long", 2, message)
        .hint("shorten it; put long text in a file in the worktree")
}

/// A name that stands where `--` can't go before it.
pub fn plain(name: String) -> Result<String, Fault> {
    match name.starts_with('-') {
        true => Err(Fault::new(
            "bad_arguments",
            2,
            format!("{name} is not a valid name"),
        )),
        false => Ok(name),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_model_writes_is_never_a_flag() {
        assert!(plain("--sandbox=off".to_owned()).is_err());
        assert_eq!(plain("fix".to_owned()).unwrap(), "fix");
    }

    #[test]
    fn what_no_process_takes_is_refused() {
        let code = |text: &str| fit(&json!({"x": [text]})).unwrap_err().code;
        assert_eq!(code(&"x".repeat(LONGEST + 1)).as_str(), "argument_too_long");
        assert_eq!(code("a\0b").as_str(), "bad_arguments");
        assert!(fit(&json!(["x".repeat(LONGEST)])).is_ok());
    }
}
