//! `weald ports`

use std::io::Write;

use clap::Args;
use serde_json::json;

use weald_app::Failure;

use crate::completion;
use crate::context::Context;
use crate::ui::Fields;

/// Show which trees have which ports
///
/// A new tree gets ports that no other tree of yours has, in any repository: WEALD_PORT is the first of them, WEALD_PORTS
/// the first and the last. They are free again when the tree is removed.
#[derive(Args)]
pub struct Ports {
    /// Only this tree
    #[arg(value_name = "NAME", add = completion::trees())]
    name: Option<String>,
}

impl Ports {
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let ground = context.ground()?;
        let trees = ground.trees(context)?;
        let blocks = trees.ports(self.name.as_deref())?;
        let range = trees.port_range();
        let answer = json!({
            "first": range.first, "last": range.last, "count": range.count, "blocks": blocks,
        });
        context.ui.answer(
            || Fields::new().with("ports", &answer),
            |out| {
                for held in &blocks {
                    writeln!(out, "{}  {}", held.block.to_text(), held.tree)?;
                }
                match blocks.is_empty() {
                    true => writeln!(out, "no ports are given out"),
                    false => Ok(()),
                }
            },
        )
    }
}
