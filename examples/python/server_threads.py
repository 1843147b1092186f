#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An HTTP server with a thread for each request; all threads call one model.

Run: server_threads.py [--port 8000], then
     curl --data-binary @picture.f32 http://localhost:8000/ > scores.f32
A request's body is the input of the face detector, 128 * 128 * 3 floats; the answer is the best score as
text. --self-test N sends N requests from as many threads to itself instead, and compares the answers.
"""
import argparse
import pathlib
import threading
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

import streampool

MODEL = pathlib.Path(__file__).resolve().parents[1] / "blazeface" / "model.onnx"
SHAPE = (1, 128, 128, 3)


def best_score(model, body):
    """ValueError for a body of another size."""
    picture = np.frombuffer(body, np.float32).reshape(SHAPE)
    scores, far_scores, *_ = model(picture)
    return max(scores.max(), far_scores.max())


class Handler(BaseHTTPRequestHandler):
    """`model` is set by serve(): any number of handlers call it at once."""

    model = None

    def do_POST(self):  # noqa: N802 (the name that http.server calls)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try:
            answer, code = f"{best_score(self.model, body):.9g}\n", 200
        except ValueError as error:
            answer, code = f"{error}\n", 400
        self.send_response(code)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer.encode())

    def log_message(self, format, *arguments):  # noqa: A002
        """Requests are not logged."""


class Server(ThreadingHTTPServer):
    request_queue_size = 128


def serve(port):
    handler = type("ModelHandler", (Handler,), {"model": streampool.load(MODEL)})
    return Server(("127.0.0.1", port), handler)


def self_test(server, count):
    """True if each answer is what a lone call gives."""
    address = f"http://127.0.0.1:{server.server_address[1]}/"
    pictures = [np.full(SHAPE, i / count, np.float32) for i in range(count)]
    lone = streampool.load(MODEL)
    expected = [f"{best_score(lone, picture.tobytes()):.9g}\n" for picture in pictures]

    def ask(picture):
        with urllib.request.urlopen(address, picture.tobytes(), timeout=60) as answer:
            return answer.read().decode()

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(ask, pictures)) == expected


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--self-test", type=int, metavar="N")
    options = parser.parse_args()
    server = serve(0 if options.self_test else options.port)
    if not options.self_test:
        server.serve_forever()
        return
    threading.Thread(target=server.serve_forever, daemon=True).start()
    is_same = self_test(server, options.self_test)
    server.shutdown()
    print(f"{options.self_test} requests at once: {'equal to lone calls' if is_same else 'WRONG'}")
    raise SystemExit(not is_same)


if __name__ == "__main__":
    main()
