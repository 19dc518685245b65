"""Uses fanfold's MCP server as a client of the official package does, and prints its observations as JSON.

    client.py HANDLE stdio PROGRAM ARGUMENT...
    client.py HANDLE http URL
"""

import asyncio
import json
import sys
import time

from mcp import Client, ClientSession, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client


def result_fields(result):
    return {"is_error": bool(result.is_error), "texts": [block.text for block in result.content]}


async def use(session, handle, seen):
    """Every tool, one after another and at once."""
    seen["tools"] = [tool.name for tool in (await session.list_tools()).tools]
    began = time.perf_counter()
    seen["recall"] = result_fields(await session.call_tool("recall", {"handle": handle}))
    seen["call_ms"] = (time.perf_counter() - began) * 1000
    seen["search"] = result_fields(await session.call_tool("search", {"query": "hundredth"}))
    seen["status"] = result_fields(await session.call_tool("status", {}))
    seen["wrong"] = result_fields(await session.call_tool("recall", {"handle": "000000"}))
    calls = [session.call_tool("recall", {"handle": handle}) for _ in range(8)]
    seen["at_once"] = [result_fields(result) for result in await asyncio.gather(*calls)]


async def main():
    handle, way, rest = sys.argv[1], sys.argv[2], sys.argv[3:]
    server = StdioServerParameters(command=rest[0], args=rest[1:]) if way == "stdio" else rest[0]
    # A client that negotiates the newest protocol first.
    newest = {}
    began = time.perf_counter()
    async with Client(server) as client:
        newest["init_ms"] = (time.perf_counter() - began) * 1000
        newest["version"] = str(client.protocol_version)
        await use(client, handle, newest)
    # A client that sends `initialize` first.
    greeted = {}
    began = time.perf_counter()
    opened = stdio_client(server) if way == "stdio" else streamable_http_client(server)
    async with opened as streams, ClientSession(*streams[:2]) as session:
        hello = await session.initialize()
        greeted["init_ms"] = (time.perf_counter() - began) * 1000
        greeted["version"] = str(hello.protocol_version)
        greeted["server"] = hello.server_info.name
        await use(session, handle, greeted)
    print(json.dumps({"newest": newest, "greeted": greeted}))


asyncio.run(main())
