"""Records what a real kube-apiserver makes of objects: recorded.json, which the tests of the kinds replay.

    cargo xtask control-plane                       in another terminal
    KUBECONFIG=… python3 record.py                  as it says

Every case is an object to create and, where one is given, a merge patch for it. The answers are kept
without what differs from one run to the next.
"""

import json
import os
import pathlib
import ssl
import urllib.error
import urllib.request

from cases import ALL, NAMESPACE

HERE = pathlib.Path(__file__).parent
MERGE = "application/merge-patch+json"

CONFIG = json.loads(pathlib.Path(os.environ["KUBECONFIG"]).read_text())
SERVER = CONFIG["clusters"][0]["cluster"]
TOKEN = CONFIG["users"][0]["user"]["token"]
TRUST = ssl.create_default_context(cafile=SERVER["certificate-authority"])

PLURALS = {
    "Endpoints": "endpoints",
    "NetworkPolicy": "networkpolicies",
    "PriorityClass": "priorityclasses",
    "StorageClass": "storageclasses",
    "RuntimeClass": "runtimeclasses",
}
CLUSTER = {
    "Namespace", "Node", "PersistentVolume", "StorageClass", "PriorityClass", "RuntimeClass", "ClusterRole",
    "ClusterRoleBinding",
}


def ask(method, path, body=None, media="application/json"):
    data = json.dumps(body).encode() if body is not None else None
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": media, "Accept": "application/json"}
    request = urllib.request.Request(SERVER["server"] + path, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, context=TRUST) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def place(kind, version):
    plural = PLURALS.get(kind, kind.lower() + "s")
    root = "/api/v1" if version == "v1" else f"/apis/{version}"
    inside = "" if kind in CLUSTER else f"/namespaces/{NAMESPACE}"
    return f"{root}{inside}/{plural}"


def plain(answer):
    """An object without what only this run knows; of a refusal what is said and why."""
    if answer["kind"] == "Status":
        kept = {key: answer[key] for key in ["reason", "message"] if key in answer}
        causes = answer.get("details", {}).get("causes", [])
        return kept | {"fields": [cause.get("field", "") for cause in causes]}
    for key in ["uid", "creationTimestamp", "resourceVersion", "managedFields"]:
        answer["metadata"].pop(key, None)
    return answer


def play(case):
    given = case["given"]
    kind, name = given["kind"], given["metadata"]["name"]
    path = place(kind, given["apiVersion"])
    code, answer = ask("POST", path + "?fieldValidation=Ignore", given)
    told = {**case, "code": code, "answer": plain(answer)}
    if code != 201:
        return told
    one = f"{path}/{name}"
    if "patch" in case:
        code, answer = ask("PATCH", one + "?fieldValidation=Ignore", case["patch"], MERGE)
        told |= {"patch_code": code, "patch_answer": plain(answer)}
    # Nothing may hold on to it: the next case has the same name.
    if kind != "Namespace":
        ask("PATCH", one, {"metadata": {"finalizers": None}}, MERGE)
    ask("DELETE", one + "?gracePeriodSeconds=0&propagationPolicy=Background")
    return told


ask("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
told = [json.dumps(play(case), separators=(",", ":")) for case in ALL]
(HERE / "recorded.json").write_text("[\n" + ",\n".join(told) + "\n]\n")
print(len(told), "cases")
