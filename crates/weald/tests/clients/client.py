"""The official Python SDK as a client of `weald mcp`: lists the tools, calls what a plan says, and tells what came.

client.py MODE PLAN COMMAND [ARGUMENT…]: MODE is legacy, auto or a protocol version; PLAN is a file with a list of
{"tool", "arguments"}. Each structured result is validated against the tool's output schema, by the SDK and here again.
A step with "cancel_once" is cancelled when a progress notification has these words; one with "until" is called again
until its answer has them.
"""

import asyncio
import json
import os
import sys

import jsonschema
from mcp import Client, StdioServerParameters


async def call(client, schemas, step):
    progress = []
    words = step.get("cancel_once")

    async def heard(_progress, _total, message):
        progress.append(message)
        if words and words in message:
            calling.cancel()

    calling = asyncio.ensure_future(client.call_tool(step["tool"], step["arguments"], progress_callback=heard))
    told = {"tool": step["tool"], "progress": progress}
    try:
        result = await calling
    except asyncio.CancelledError:
        return {**told, "cancelled": True}
    except Exception as error:  # a protocol error is told like any other result
        return {**told, "protocol_error": str(error)[:500]}
    if result.is_error:
        return {**told, "error": True, "answer": json.loads(result.content[0].text)}
    if step.get("until", "") not in json.dumps(result.structured_content):
        await asyncio.sleep(0.1)
        return await call(client, schemas, step)
    jsonschema.validate(result.structured_content, schemas[step["tool"]])
    return {**told, "error": False, "answer": result.structured_content}


async def main(mode, plan, command):
    with open(plan, encoding="utf-8") as file:
        steps = json.load(file)
    server = StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))
    async with Client(server, mode=mode) as client:
        tools = (await client.list_tools()).tools
        schemas = {tool.name: tool.output_schema for tool in tools}
        for schema in schemas.values():
            jsonschema.Draft202012Validator.check_schema(schema)
        results = [await call(client, schemas, step) for step in steps]
        version = client.protocol_version
    print(json.dumps({"version": version, "tools": list(schemas), "results": results}))


asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
