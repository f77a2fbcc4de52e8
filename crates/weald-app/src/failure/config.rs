//! Settings that don't fit, told with how to mend them where they stand.

use crate::ConfigFileError;
use serde_json::json;
use weald_core::config::{ConfigError, Origin, similar_section};

use super::Failure;
use crate::exit;

impl From<ConfigFileError> for Failure {
    fn from(error: ConfigFileError) -> Self {
        let message = error.to_string();
        match error {
            ConfigFileError::Git(error) => error.into(),
            ConfigFileError::File { path, source } => Self::file(&path, &source),
            ConfigFileError::Syntax { path, .. } => {
                Self::new("config_syntax", exit::REFUSED, message)
                    .hint(format!("edit {}", path.display()))
            }
            ConfigFileError::Invalid(error) => Self::new("config_invalid", weight(&error), message)
                .hint(mending(&error))
                .details(json!({"key": error.key, "origin": error.origin.to_string()})),
            ConfigFileError::BadValue { .. } => Self::new("invalid_value", exit::USAGE, message),
            ConfigFileError::UnknownKey { key, similar } => {
                let failure = Self::new("unknown_key", exit::USAGE, message);
                failure.hint(match (similar_section(&key), similar.is_empty()) {
                    (Some(section), _) => format!("weald config list {section}"),
                    (None, true) => "weald config list".to_owned(),
                    (None, false) => format!("did you mean `{}`?", similar.join("` or `")),
                })
            }
        }
    }
}

/// A flag that makes no sense is the call's mistake.
fn weight(error: &ConfigError) -> u8 {
    match error.origin {
        Origin::Flag(_) => exit::USAGE,
        _ => exit::REFUSED,
    }
}

/// How to mend a value, by where it stands.
fn mending(error: &ConfigError) -> String {
    match &error.origin {
        Origin::Variable(name) => format!("unset {name}"),
        Origin::User(path) => format!("edit {path}"),
        Origin::Flag(_) => format!("use another value: --set {}=VALUE", error.key),
        _ => format!(
            "weald config set {0} VALUE, or weald config unset {0}",
            error.key
        ),
    }
}
