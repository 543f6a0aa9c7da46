"""The application's side: run it against `everturn server` and `everturn worker examples/shop.py`."""

import asyncio

from everturn import ChatClient


async def main() -> None:
    async with await ChatClient.connect(store="sqlite:///everturn.db") as chat:
        turn = await chat.submit("thread-1", "What is the status of order 7?", agent="shop")
        async for chunk in turn.stream():  # the AI SDK's UI message chunks, numbered
            print(chunk.seq, chunk.type, dict(chunk.data))
        result = await turn.result()  # status, text, message parts, usage, error
        print(result.status, result.text)

        turn = await chat.submit("thread-1", "Tell me of your teas, one by one", agent="shop")
        await chat.cancel_chat(turn.request_id, reason="the user pressed stop")
        print((await turn.result()).status)


asyncio.run(main())
