"""What an API server answers with: objects, and the Status object of a refusal."""

from typing import Any

import orjson
from aiohttp import web

Json = dict[str, Any]


def status(code: int, reason: str, message: str) -> web.Response:
    return json_response(status_object(code, reason, message), code)


def status_object(code: int, reason: str, message: str) -> Json:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
    }


def json_response(raw: Json, code: int = 200) -> web.Response:
    return web.Response(status=code, body=orjson.dumps(raw), content_type="application/json")
