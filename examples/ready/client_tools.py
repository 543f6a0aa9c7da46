"""Client tools: the page that the user looks at says with its request what it can do."""

from __future__ import annotations

from everturn import Agent, ChatClient

SHOW_MAP = {
    "name": "show_map",
    "description": "Shows a place on the map beside the chat.",
    "schema": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
}


class Guide(Agent):
    name = "guide"
    model = "openai/gpt-4o-mini"


async def ask(chat: ChatClient, question: str) -> str:
    turn = await chat.submit("thread-1", question, agent="guide", client_tools=[SHOW_MAP])
    async for chunk in turn.stream():
        if chunk.type == "tool-input-available":
            result = {"shown": chunk.data["input"]["place"]}  # a page would draw its map here
            await chat.submit_tool_result(turn.request_id, chunk.data["toolCallId"], result)
    return (await turn.result()).text
