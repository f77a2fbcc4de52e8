//! Numbers in arguments, held against the bounds that a tool's schema tells.
//!
//! Types and names are checked when the arguments are read; this is what reading does not know.

use rmcp::model::JsonObject;
use serde_json::{Number, Value};

/// The arguments, with every whole number written as one (to JSON 1.0 is 1); or why one is out of bounds.
pub fn within(schema: &JsonObject, mut arguments: JsonObject) -> Result<JsonObject, String> {
    let properties = schema.get("properties").unwrap_or(&Value::Null);
    for (name, value) in &mut arguments {
        let property = &properties[name.as_str()];
        match value {
            Value::Array(items) => {
                for item in items {
                    number(name, item, &property["items"])?;
                }
            }
            value => number(name, value, property)?,
        }
    }
    Ok(arguments)
}

fn number(name: &str, value: &mut Value, schema: &Value) -> Result<(), String> {
    let Value::Number(given) = value else {
        return Ok(());
    };
    let Some(size) = given.as_f64() else {
        return Ok(());
    };
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    if let Some(least) = bound("minimum").filter(|least| size < *least) {
        return Err(format!("{name} is {given}; the minimum is {least}"));
    }
    if let Some(most) = bound("maximum").filter(|most| size > *most) {
        return Err(format!("{name} is {given}; the maximum is {most}"));
    }
    if given.is_f64() && size.fract() == 0.0 && size.abs() <= EXACT {
        *given = Number::from(size as i64);
    }
    Ok(())
}

/// Up to here every whole number has a float of its own.
const EXACT: f64 = (1_u64 << 53) as f64;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_are_within_the_bounds_of_the_schema() {
        let schema = json!({"properties": {
            "wait": {"type": "integer", "minimum": 0, "maximum": 1800},
            "task_id": {"type": ["integer", "string"], "minimum": 1},
            "blocked_by": {"type": "array", "items": {"type": ["integer", "string"], "minimum": 1}},
        }});
        let held = |arguments: Value| {
            let arguments = arguments.as_object().unwrap().clone();
            let held = within(schema.as_object().unwrap(), arguments);
            held.map(Value::from).map_err(drop)
        };
        for (given, told) in [
            (json!({"wait": 1800}), Ok(json!({"wait": 1800}))),
            (json!({"wait": 1801}), Err(())),
            (json!({"wait": 9_223_372_036_854_775_808_u64}), Err(())),
            (json!({"wait": -1}), Err(())),
            (json!({"task_id": 1.0}), Ok(json!({"task_id": 1}))),
            (json!({"task_id": 1.5}), Ok(json!({"task_id": 1.5}))),
            (json!({"task_id": 0}), Err(())),
            (json!({"task_id": "gh-1"}), Ok(json!({"task_id": "gh-1"}))),
            (json!({"blocked_by": [2, -1]}), Err(())),
            (json!({"unknown": -1}), Ok(json!({"unknown": -1}))),
        ] {
            assert_eq!(held(given.clone()), told, "{given}");
        }
    }
}
