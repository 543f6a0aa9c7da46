"""on_chunk: watches the stream from the side; clients never wait for it."""

from __future__ import annotations

from everturn import Agent, Chunk, ChunkContext


class Poet(Agent):
    name = "poet"
    model = "openai/gpt-4o-mini"

    async def on_chunk(self, chunk: Chunk, ctx: ChunkContext) -> None:
        if chunk.type == "text-delta":
            ctx.state["characters"] = ctx.state.get("characters", 0) + len(chunk.data["delta"])
        elif chunk.type == "finish-step":
            ctx.log("the model wrote", {"characters": ctx.state.get("characters", 0)})
