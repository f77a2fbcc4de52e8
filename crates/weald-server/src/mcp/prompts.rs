//! Words for models that come with the server: its instructions, and prompts that a person can choose.

use rmcp::ErrorData;
use rmcp::model::{GetPromptResult, JsonObject, Prompt, PromptArgument, PromptMessage, Role};
use serde_json::Value;

use super::tool::Audience;

const LEAD: &str = "lead";
const TEAMMATE: &str = "teammate";

/// The name of the argument that a task goes into.
pub const TASK_ARGUMENT: &str = "task_id";

/// The longest argument that is taken into a prompt, in bytes.
const MOST: usize = 64 << 10;

/// What a client shows its model once, beside the tools.
pub fn instructions(audience: Audience) -> &'static str {
    match audience {
        Audience::Confined => {
            "You work on one task, in a worktree of your own, in a sandbox. task_get shows the task. Work in this directory and \
             commit; nothing else can be written. Read message_inbox now and then; ask the session that \
             started you (your prompt names it) what only it can decide. At the end call task_complete with a report (or task_fail with a reason). Your prompt says whether \
             your work lands then."
        }
        Audience::Teammate => {
            "weald gives each task a worktree of its own. task_claim takes a task and returns its path and branch: work there and \
             nowhere else, never in the main checkout, and commit. Read message_inbox now and then. At the end land with \
             a report: that completes the task. A task with nothing to land ends with task_complete."
        }
        Audience::Lead => {
            "weald runs many coding agents on one git repository: one task, worktree and sandbox each. Their work is \
             committed; it lands, tested, automatically or with land, as configured. Break work into tasks (task_create), start agents on them (agent_spawn), look after \
             them (check_agents, message_inbox, reply), wait (wait_agents). To work on a task yourself: task_claim, work in its \
             path, commit, land with a report. Never edit the main checkout while agents work."
        }
    }
}

/// The prompts that a caller may have.
pub fn all(audience: Audience) -> Vec<Prompt> {
    let argument = |name: &str, what: &str| {
        let argument = PromptArgument::new(name).with_description(what);
        Some(vec![argument.with_required(false)])
    };
    let lead = Prompt::new(
        LEAD,
        Some("Reach a goal with agents: tasks, agents, questions, landing."),
        argument("goal", "The goal to reach"),
    );
    let teammate = Prompt::new(
        TEAMMATE,
        Some("Do one task in its worktree, from claiming to landing."),
        argument(
            TASK_ARGUMENT,
            "Which task; otherwise the next one that is ready",
        ),
    );
    let mut prompts = vec![teammate.with_title("Work on a task")];
    if audience == Audience::Lead {
        prompts.insert(0, lead.with_title("Lead a team of agents"));
    }
    prompts
}

/// One of them, filled in.
pub fn get(
    audience: Audience,
    name: &str,
    arguments: &JsonObject,
) -> Result<GetPromptResult, ErrorData> {
    let is_offered = all(audience).iter().any(|prompt| prompt.name == name);
    let given = |name: &str| match arguments.get(name) {
        Some(Value::String(text)) if text.len() > MOST => Err(ErrorData::invalid_params(
            format!("{name} has more than {MOST} bytes"),
            None,
        )),
        Some(Value::String(text)) => {
            Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty()))
        }
        Some(Value::Number(number)) => Ok(Some(number.to_string())),
        None => Ok(None),
        Some(_) => Err(ErrorData::invalid_params(
            format!("{name} is not a string"),
            None,
        )),
    };
    let text = match name {
        LEAD if is_offered => lead(given("goal")?.as_deref()),
        TEAMMATE if is_offered => teammate(audience, given(TASK_ARGUMENT)?.as_deref()),
        _ => {
            let message = format!("there is no prompt {name:.100}");
            return Err(ErrorData::invalid_params(message, None));
        }
    };
    let message = PromptMessage::new_text(Role::User, text);
    Ok(GetPromptResult::new(vec![message]))
}

fn lead(goal: Option<&str>) -> String {
    let goal = goal.unwrap_or("Ask me for the goal, then begin.");
    format!(
        "{goal}

Reach this goal as the lead of a team, with weald's tools.

1. Look: task_list, check_agents, worktree_list. Don't redo what is already there.
2. Split the work into tasks that can be done at the same time, each with acceptance criteria (task_create: \
acceptance), small enough for one agent. List the tasks it depends on in blocked_by. Tasks that change the same \
lines go one after the other; conflicts shows which worktrees would not merge.
3. agent_spawn for each task that is ready, as many at once as the machine can handle. Each agent has its own worktree and \
sandbox; you need not prepare anything.
4. Until all have ended: wait_agents (any: true); after each return read message_inbox and check_agents. Answer questions at \
once with reply, an agent waits for it. Steer one that goes astray (agent_diff, agent_steer), stop one that is beyond help \
(agent_stop with release), and start what became ready.
5. Finished work lands automatically, tested, where that is configured; elsewhere it stays in its worktree: review it \
(agent_diff) and land it. For work that did not land, task_get and land_status give the reason: give a conflict or failed tests back to an agent \
(agent_spawn on the same task continues in the same worktree).
6. When nothing is left, tell me what landed, what did not and why, and what you decided on the way.

Don't edit files in the main checkout, and don't merge or push yourself.
"
    )
}

fn teammate(audience: Audience, task: Option<&str>) -> String {
    let (claim, end) = match audience {
        Audience::Confined => (
            "1. task_get shows your task. It is yours already, and this directory is its worktree.".to_owned(),
            "task_complete with a report: what you did, what you checked and how. Your prompt says whether your work lands then.",
        ),
        _ => (
            match task {
                Some(task) => format!("1. task_claim task {task}. The answer has the path of its worktree."),
                None => "1. task_claim without an id: you get the next task that is ready, and the path of its worktree.".to_owned(),
            },
            "land with a report: what you did, what you checked and how. That completes the task. With a conflict or failed tests, \
             fix it in the worktree, commit and land again. A task with nothing to land ends with task_complete.",
        ),
    };
    format!(
        "Work on a task with weald's tools.

{claim}
2. Read the task: its acceptance criteria, and the reports of the tasks before it.
3. Work in that worktree and nowhere else: every path that you read or write is below it. The main checkout is not yours.
4. Commit as you go, with messages that say why. Run the tests there.
5. Between steps read message_inbox: your lead may steer you. Ask what only the lead can decide (ask waits for the answer); \
continue with something else until it comes.
6. If it can't be done, say so with task_fail and a reason, instead of half a solution.
7. At the end: {end}
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(audience: Audience, name: &str, arguments: Value) -> Option<String> {
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        let result = get(audience, name, &arguments).ok()?;
        let content = serde_json::to_value(&result.messages[0].content).ok()?;
        content["text"].as_str().map(str::to_owned)
    }

    #[test]
    fn prompts_are_short_fit_the_role_and_take_their_argument() {
        let none = || serde_json::json!({});
        for audience in [Audience::Confined, Audience::Teammate, Audience::Lead] {
            for prompt in all(audience) {
                let text = text(audience, &prompt.name, none()).unwrap();
                assert!(text.lines().count() <= 40, "{text}");
            }
            assert!(instructions(audience).len() < 700);
            assert_eq!(text(audience, "other", none()), None);
        }
        let goal = serde_json::json!({"goal": "port it"});
        assert!(
            text(Audience::Lead, LEAD, goal.clone())
                .unwrap()
                .starts_with("port it")
        );
        assert_eq!(text(Audience::Teammate, LEAD, goal), None);
        let task = serde_json::json!({"task_id": "7"});
        for task in [&task, &serde_json::json!({"task_id": 7})] {
            let told = text(Audience::Teammate, TEAMMATE, task.clone()).unwrap();
            assert!(told.contains("task_claim task 7"), "{told}");
        }
        // Inside a sandbox there is one task, whatever is asked.
        let told = text(Audience::Confined, TEAMMATE, task).unwrap();
        assert!(!told.contains("task_claim"), "{told}");
        let odd = serde_json::json!({"goal": "x".repeat(MOST + 1)});
        assert_eq!(text(Audience::Lead, LEAD, odd), None);
    }
}
