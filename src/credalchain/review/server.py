"""HTTP server of the review page: routes and access control."""

import hmac
import logging
from importlib import resources
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, RedirectResponse, Response
from pydantic import BaseModel, Field

from credalchain.review.rows import IMAGES, image_file
from credalchain.review.session import ORDERS, ReviewSession
from credalchain.review.store import AnswersFileError, ReviewError

_MAX_BYTES = 64 * 1024  # of a request
_log = logging.getLogger(__name__)
_PAGE = {"index.html": "text/html", "page.css": "text/css", "page.js": "text/javascript"}
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class PersonRequest(BaseModel):
    """Request of a named person."""

    who: str = Field(min_length=1, max_length=100)


class NextRequest(PersonRequest):
    """Request for the next row."""

    order: str = ORDERS[0]
    after: int | None = None


class UndoRequest(PersonRequest):
    """Request to undo the last action."""

    request: str = Field(min_length=8, max_length=100)


class AnswerRequest(UndoRequest):
    """0 or 1; None skips the label. The key is that of the view that was answered."""

    label: int
    value: int | None = Field(default=None, ge=0, le=1)
    key: str = ""


def make_app(
    session: ReviewSession, *, hosts: set[str] | None, token: str | None = None, title: str = ""
) -> FastAPI:
    """Return the application.

    Parameters
    ----------
    session : ReviewSession
    hosts : set of str, or None
        Allowed values of the Host header, with the port, against DNS rebinding. None allows any, if
        a token is required.
    token : str, optional
        A secret that clients must send; for servers that others can reach.
    title : str
        Name of the reviewed data, shown at the top of the page.
    """
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    rows = session.rows
    cells = rows.table[session.show].select_dtypes(exclude=["number", "bool"]).astype(str)
    addresses = [cells[name].str.startswith(("http://", "https://")).any() for name in cells]
    policy = (  # nothing from elsewhere, but images whose addresses stand in the cells shown
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        f"img-src 'self'{' http: https:' * any(addresses)}; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )

    @app.middleware("http")
    async def guard(request: Request, call_next: Any) -> Response:
        response = _refusal(request, hosts, token)
        if response is None:
            try:
                response = await call_next(request)
            except Exception:
                _log.exception("a request failed: %s %s", request.method, request.url.path)
                response = _refused(500, "the server failed; the terminal where it runs says why.")
        response.headers.update(_HEADERS)
        response.headers["Content-Security-Policy"] = policy
        return response

    @app.exception_handler(ReviewError)
    @app.exception_handler(AnswersFileError)
    @app.exception_handler(RequestValidationError)
    async def explain_error(request: Request, error: Exception) -> Response:
        if isinstance(error, RequestValidationError):
            fields = [".".join(map(str, item["loc"][1:])) for item in error.errors()]
            return _refused(422, f"the request was not understood: {', '.join(fields[:3])}.")
        if isinstance(error, ReviewError):
            return _refused(error.status, str(error))
        _log.error("%s", error)
        return _refused(503, f"{error} Nothing is stored yet; the page tries again.")

    @app.get("/")
    @app.get("/page.css")
    @app.get("/page.js")
    def page(request: Request) -> Response:
        given_token = request.query_params.get("token")
        if token is not None and given_token is not None:  # keep it where scripts do not see it
            answer = RedirectResponse("/", status_code=303)
            value = quote(given_token, safe="")  # cookies are ASCII
            answer.set_cookie(_cookie(request), value, httponly=True, samesite="strict")
            return answer
        file = request.url.path.removeprefix("/") or "index.html"
        content = resources.files("credalchain.review").joinpath("page", file).read_bytes()
        return Response(content, media_type=_PAGE[file])

    @app.get("/favicon.ico")
    def icon() -> Response:
        return Response(status_code=204)

    @app.get("/api/session")
    def describe() -> dict[str, Any]:
        return {
            "title": title,
            "labels": rows.label_names,
            "orders": list(ORDERS),
            "model": {"file": rows.model_file, "digest": rows.model_digest},
            "blind": bool(rows.blind.any()),
            "orphans": rows.n_orphans,
            "progress": session.progress(),
        }

    @app.post("/api/next")
    def next_row(asked: NextRequest) -> dict[str, Any]:
        return session.next_row(**vars(asked))

    @app.post("/api/rows/{row}/open")
    def open_row(row: int, asked: PersonRequest) -> dict[str, Any]:
        return session.open_row(row, asked.who)

    @app.post("/api/rows/{row}/answers")
    def answer(row: int, given: AnswerRequest) -> dict[str, Any]:
        return session.answer(row, **vars(given))

    @app.post("/api/undo")
    def undo(asked: UndoRequest) -> dict[str, Any]:
        return session.undo(**vars(asked))

    app.get("/api/rows/{row}/why/{label}")(session.why)
    app.get("/api/queue")(session.next_rows)

    @app.get("/api/disagreements")
    def disagreements() -> dict[str, Any]:
        return {"rows": session.disagreements()[:200], "blind": session.blind_result()}

    @app.get("/images/{row}/{column}")
    def image(row: int, column: int) -> Response:
        file = None
        if 0 <= row < len(rows.keys) and 0 <= column < len(session.show):
            file = image_file(rows.table[session.show[column]].iloc[row], session.folder)
        if file is None:
            raise HTTPException(404)
        return FileResponse(file, media_type=IMAGES[file.suffix.lower()])

    return app


def _refusal(request: Request, hosts: set[str] | None, token: str | None) -> Response | None:
    """Return why a request is not served; None if it is."""
    host = request.headers.get("host", "").lower()
    if hosts is not None and host not in hosts:
        return _refused(421, "the Host header must be an address of this server.")
    origin = request.headers.get("origin")
    if origin is not None and urlsplit(origin).netloc.lower() not in (hosts or {host}):
        return _refused(403, "cross-site requests are not served.")
    if token is not None and not _has_token(request, token):
        return _refused(401, "a token is needed: open the address that the command printed.")
    if request.method not in ("GET", "HEAD", "POST"):
        return _refused(405, "only GET and POST are served.")
    if request.method == "POST":
        if request.headers.get("content-type", "").partition(";")[0] != "application/json":
            return _refused(415, "requests must be JSON.")
        size = request.headers.get("content-length", "")
        if not size.isdigit() or "transfer-encoding" in request.headers:
            return _refused(411, "requests must have a Content-Length header.")
        if int(size) > _MAX_BYTES:
            return _refused(413, f"requests must have at most {_MAX_BYTES} bytes.")
    return None


def _refused(status: int, message: str) -> Response:
    return JSONResponse({"detail": message}, status_code=status)


def _has_token(request: Request, token: str) -> bool:
    given_tokens = (
        unquote(request.cookies.get(_cookie(request), "")).encode(),
        request.headers.get("authorization", "").removeprefix("Bearer ").encode("latin-1"),  # UTF-8
        request.query_params.get("token", "").encode(),
    )
    return any(hmac.compare_digest(given_token, token.encode()) for given_token in given_tokens)


def _cookie(request: Request) -> str:
    """Return the name of the cookie: cookies do not tell ports apart."""
    return f"credalchain_{request.url.port or 80}"
