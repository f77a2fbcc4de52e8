//! The protocol: lists tools, calls them, and tells errors as tools' errors.
//!
//! One handler serves clients that begin with `initialize` and clients that send everything with each request.

use std::future::poll_fn;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams,
    CompleteResult, CompletionInfo, ContentBlock, CustomRequest, CustomResult, ErrorCode,
    GetPromptRequestParams, GetPromptResponse, Implementation, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, Reference, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::transport::io::stdio_pipes;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use super::child::{GRACE, Lasts};
use super::hints;
use super::lines::Lines;
use super::prompts;
use super::resources;
use super::tool::Entry;
use super::tools;
use super::weald::{Call, Weald};
use crate::broker::{Fault, Reply};

/// How long clients may remember the list of tools: it is the same as long as the server lives.
const LIST_HOLDS_MS: u64 = 60 * 60 * 1000;

/// Methods that take params.
const SERVED: [&str; 9] = [
    "initialize",
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "prompts/list",
    "prompts/get",
    "completion/complete",
];

/// Serves on stdin and stdout until the client leaves, and says meanwhile that it lives, `every` so often. At the end long
/// calls are asked to end, short ones are waited for, and a session of the server's own gives back what it holds.
pub fn serve(weald: Weald, every: Duration) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let served = runtime.block_on(async {
        let (leave, gone) = watch::channel(false);
        let leave = Arc::new(leave);
        let (working, mut ended) = mpsc::channel(1);
        let weald = Arc::new(weald);
        let (beating, leaving) = (weald.clone(), weald.clone());
        let beats = tokio::spawn(async move { beating.beat(every).await });
        let server = Server {
            tools: tools::all(weald.audience, &weald.aliases),
            weald,
            gone,
            working,
        };
        let (read, write) = stdio_pipes();
        let served = match server.serve(Lines::new(read, write, leave.clone())).await {
            Ok(running) => tokio::select! {
                ended = running.waiting() => ended.map(drop).map_err(io::Error::other),
                // Clients give a server that does not end at once a signal, and soon after another one.
                told = told_to_end() => told,
            },
            // A client that left before it said anything is no failure.
            Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(io::Error::other(error)),
        };
        let _ = leave.send(true);
        let _ = timeout(GRACE * 2, ended.recv()).await;
        beats.abort();
        leaving.take_leave().await;
        served
    });
    // Somebody may hold stdin open; nothing is read from it any more.
    runtime.shutdown_background();
    served
}

/// Waits for a signal that asks the server to end.
async fn told_to_end() -> io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
        _ = hang_up.recv() => {}
    }
    Ok(())
}

struct Server {
    weald: Arc<Weald>,
    tools: Vec<Entry>,
    gone: watch::Receiver<bool>,
    /// Every call holds one of these: when all are gone, nothing is at work.
    working: mpsc::Sender<()>,
}

impl Server {
    /// A call that a request makes; the server does not end before it.
    fn begin<'a>(
        &'a self,
        context: &'a RequestContext<RoleServer>,
    ) -> (mpsc::Sender<()>, Call<'a>) {
        let call = Call {
            weald: &self.weald,
            context,
            told: Arc::default(),
            gone: self.gone.clone(),
            lasts: Lasts::Shortly,
        };
        (self.working.clone(), call)
    }

    async fn call(
        &self,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        let found = self
            .tools
            .iter()
            .find(|tool| tool.described.name == request.name);
        let Some(tool) = found else {
            let message = format!("there is no tool {:.100}", request.name);
            return Err(ErrorData::invalid_params(message, None));
        };
        let (_working, call) = self.begin(context);
        let arguments = request.arguments.unwrap_or_default();
        Ok(match unpanicked((tool.call)(arguments, &call)).await {
            Ok(answer) => {
                let answer = hints::in_answer(answer, &self.tools);
                CallToolResult::structured(answer.into())
            }
            Err(fault) => failed(&hints::for_tools(fault, &self.tools, Some(tool))),
        })
    }
}

/// A panic in a tool is that call's error, and not the server's end.
async fn unpanicked<T>(work: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
    let mut work = pin!(work);
    poll_fn(move |context| {
        let polled = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context)));
        polled.unwrap_or_else(|_| {
            let fault = Fault::new("bug", 70, "internal error in weald during this call");
            Poll::Ready(Err(fault.hint("please report it; the server keeps running")))
        })
    })
    .await
}

/// An error as its JSON text. Not as structured content: clients hold that against the schema of answers.
fn failed(fault: &Fault) -> CallToolResult {
    let told = Value::Object(Reply::fault(fault).answer);
    CallToolResult::error(vec![ContentBlock::text(told.to_string())])
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_prompts()
            .enable_completions()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("weald", env!("CARGO_PKG_VERSION")))
            .with_instructions(prompts::instructions(self.weald.audience))
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let described = self.tools.iter().map(|tool| tool.described.clone());
        Ok(ListToolsResult::with_all_items(described.collect())
            .with_ttl_ms(LIST_HOLDS_MS)
            .with_cache_scope(CacheScope::Private))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        Ok(self.call(request, &context).await?.into())
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(resources::fixed())
            .with_ttl_ms(LIST_HOLDS_MS)
            .with_cache_scope(CacheScope::Private))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let templates = resources::templates();
        Ok(ListResourceTemplatesResult::with_all_items(templates)
            .with_ttl_ms(LIST_HOLDS_MS)
            .with_cache_scope(CacheScope::Private))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let (_working, call) = self.begin(&context);
        let turn = call.turn().await;
        let _turn = turn.map_err(|fault| ErrorData::internal_error(fault.message, None))?;
        call.introduce().await;
        let read = resources::read(&request.uri, &call, &self.tools).await?;
        // It is old at once.
        let read = read.with_ttl_ms(0).with_cache_scope(CacheScope::Private);
        Ok(read.into())
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let prompts = prompts::all(self.weald.audience);
        Ok(ListPromptsResult::with_all_items(prompts)
            .with_ttl_ms(LIST_HOLDS_MS)
            .with_cache_scope(CacheScope::Private))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        Ok(prompts::get(self.weald.audience, &request.name, &arguments)?.into())
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = request.method;
        // A method that is served comes here when its params are not what it takes.
        match SERVED.contains(&method.as_str()) {
            true => {
                let message = format!("invalid params for {method}");
                Err(ErrorData::invalid_params(message, None))
            }
            false => Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None)),
        }
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let (_working, call) = self.begin(&context);
        let turn = call.turn().await;
        let _turn = turn.map_err(|fault| ErrorData::internal_error(fault.message, None))?;
        let (name, beginning) = (&request.argument.name, &request.argument.value);
        let values = match (&request.r#ref, name.as_str()) {
            (Reference::Resource(_), "name") => resources::trees(beginning, &call).await,
            (Reference::Prompt(_), prompts::TASK_ARGUMENT) => {
                resources::tasks(beginning, &call).await
            }
            _ => Vec::new(),
        };
        let values = CompletionInfo::with_all_values(values);
        Ok(CompleteResult::new(values.unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_of_its_call() {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let fallen = unpanicked(async { panic!("on purpose") });
        let fault = runtime.unwrap().block_on(fallen).map(|(): ()| ());
        assert_eq!(fault.unwrap_err().code.as_str(), "bug");
    }
}
