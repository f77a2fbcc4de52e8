"""The official Python SDK as a client of `weald mcp`: lists the tools, calls what a plan says, and tells what came.

client.py MODE PLAN COMMAND [ARGUMENT…]: MODE is legacy, auto or a protocol version; PLAN is a file with a list of
{"tool", "arguments"}. Each structured result is validated against the tool's output schema, by the SDK and here again.
"""

import asyncio
import json
import os
import sys

import jsonschema
from mcp import Client, StdioServerParameters


async def call(client, schemas, step):
    try:
        result = await client.call_tool(step["tool"], step["arguments"])
    except Exception as error:  # a protocol error is told like any other result
        return {"tool": step["tool"], "protocol_error": str(error)[:500]}
    if result.is_error:
        return {"tool": step["tool"], "error": True, "answer": json.loads(result.content[0].text)}
    jsonschema.validate(result.structured_content, schemas[step["tool"]])
    return {"tool": step["tool"], "error": False, "answer": result.structured_content}


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
