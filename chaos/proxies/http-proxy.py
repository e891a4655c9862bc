"""A proxy of a business in Python's standard library: submits jobs over HTTP, repeats each under its key, and reads its end.

argv: the URL of Mason, how many jobs, how many that must be refused. Writes one JSON object a job.
"""
import json
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

url, count, refused = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])


def call(method, path, body=None, key=None):
    """Until there is an answer: a lost one leaves open whether the server has acted."""
    headers = {"content-type": "application/json"}
    if key:
        headers["idempotency-key"] = key
    while True:
        data = None if body is None else json.dumps(body).encode()
        try:
            request = urllib.request.Request(url + path, data, headers, method=method)
            with urllib.request.urlopen(request, timeout=10) as response:
                return response.status, json.load(response)
        except urllib.error.HTTPError as error:
            try:
                document = json.load(error)
            except Exception:
                document = None
            if error.code not in (429, 500, 502, 503, 504) and document is not None:
                return error.code, document
        except Exception:
            pass
        time.sleep(0.2)


def one(at):
    name = f"py-{at}"
    body = {"prompt": f"job {name}: ", "user_id": "py"}
    if at >= count:
        body["limits"] = {"max_steps": -1}
    status, answer = call("POST", "/v1/runs", body, name)
    if status >= 400:
        return {"name": name, "errors": answer.get("errors")}
    run_id = answer["id"]
    while answer["status"] in ("queued", "running"):
        time.sleep(0.5)
        _, answer = call("GET", f"/v1/runs/{run_id}")
    return {"name": name, "run_id": run_id, "status": answer["status"]}


with ThreadPoolExecutor(64) as pool:
    for line in pool.map(one, range(count + refused)):
        print(json.dumps(line), flush=True)
