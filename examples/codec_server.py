"""Decrypts for the Temporal Web UI and command line what examples/encryption.py has encrypted.

    ENCRYPTION_KEYS=… python examples/codec_server.py
    temporal workflow show --workflow-id turn-… --codec-endpoint http://127.0.0.1:8081

In the Web UI: Settings, Codec Server, the same address. Whoever reaches this server can read every turn: it listens on
this machine only, unless CODEC_HOST says otherwise and CODEC_TOKEN makes callers prove themselves
(--codec-auth "Bearer …").
"""

import hmac
import os

from aiohttp import web
from encryption import EncryptionCodec, keys_from
from google.protobuf import json_format
from temporalio.api.common.v1 import Payloads

from everturn import BadInput

HOST, PORT = os.environ.get("CODEC_HOST", "127.0.0.1"), int(os.environ.get("CODEC_PORT", "8081"))
TOKEN = os.environ.get("CODEC_TOKEN", "")
WEB_UI = os.environ.get("EVERTURN_WEB_UI", "http://localhost:8233")
CODEC = web.AppKey("codec", EncryptionCodec)


@web.middleware
async def guard(request: web.Request, handler) -> web.StreamResponse:
    """The Web UI's pages may call; everybody else has to know the token, if there is one."""
    known = not TOKEN or hmac.compare_digest(request.headers.get("Authorization", ""), f"Bearer {TOKEN}")
    if request.method == "OPTIONS":
        response: web.StreamResponse = web.Response()
    elif known:
        response = await handler(request)
    else:
        response = web.Response(status=401, text="the token is missing or wrong")
    if request.headers.get("Origin") == WEB_UI:
        response.headers["Access-Control-Allow-Origin"] = WEB_UI
        response.headers["Access-Control-Allow-Headers"] = "authorization, content-type, x-namespace"
        response.headers["Access-Control-Allow-Credentials"] = "true"
    return response


async def recode(request: web.Request) -> web.Response:
    codec = request.app[CODEC]
    try:
        payloads = json_format.Parse(await request.read(), Payloads()).payloads
        changed = await (codec.decode if request.path.endswith("/decode") else codec.encode)(payloads)
    except (BadInput, json_format.ParseError) as error:
        return web.Response(status=400, text=str(error))
    return web.json_response(text=json_format.MessageToJson(Payloads(payloads=changed)))


def make_app(codec: EncryptionCodec) -> web.Application:
    app = web.Application(middlewares=[guard])
    app[CODEC] = codec
    app.add_routes([web.post("/encode", recode), web.post("/decode", recode), web.options("/{any}", recode)])
    return app


if __name__ == "__main__":
    if HOST not in ("127.0.0.1", "::1", "localhost") and not TOKEN:
        raise SystemExit("set CODEC_TOKEN before others can reach this server")
    web.run_app(make_app(EncryptionCodec(keys_from(os.environ.get("ENCRYPTION_KEYS", "")))), host=HOST, port=PORT)
