"""Makes types.z, pairs.z and openapi.json.z from one release of Kubernetes.

    cargo xtask control-plane          in another terminal
    KUBECONFIG=… python3 make.py       as it says; needs Go, the modules are fetched as Go fetches them

types.z         the Go types behind the built-in kinds (types.go tells what is noted)
pairs.z         objects of these kinds in both forms, for the tests (pairs.go)
openapi.json.z  the OpenAPI v3 schemas that the built-in kinds reach, as the server tells them:
                descriptions and the words that are allowed included

All are raw deflate streams.
"""

import json
import os
import pathlib
import re
import shutil
import ssl
import subprocess
import tempfile
import urllib.request
import zlib

LIBRARIES = "v0.36.3"
HERE = pathlib.Path(__file__).parent
REFERENCE = "#/components/schemas/"

# The page of each group, and the kinds that are served of it.
PAGES = {
    "api__v1": "ConfigMap Endpoints Event LimitRange Namespace Node PersistentVolumeClaim PersistentVolume"
    " Pod ResourceQuota Secret ServiceAccount Service Binding",
    "apis__events.k8s.io__v1": "Event",
    "apis__authentication.k8s.io__v1": "SelfSubjectReview TokenReview TokenRequest",
    "apis__authorization.k8s.io__v1": "LocalSubjectAccessReview SelfSubjectAccessReview"
    " SelfSubjectRulesReview SubjectAccessReview",
    "apis__autoscaling__v1": "Scale",
    "apis__batch__v1": "Job",
    "apis__networking.k8s.io__v1": "NetworkPolicy",
    "apis__policy__v1": "PodDisruptionBudget Eviction",
    "apis__rbac.authorization.k8s.io__v1": "ClusterRoleBinding ClusterRole RoleBinding Role",
    "apis__storage.k8s.io__v1": "StorageClass",
    "apis__apiextensions.k8s.io__v1": "CustomResourceDefinition",
    "apis__scheduling.k8s.io__v1": "PriorityClass",
    "apis__coordination.k8s.io__v1": "Lease",
    "apis__node.k8s.io__v1": "RuntimeClass",
    "apis__discovery.k8s.io__v1": "EndpointSlice",
}
# What subresources speak, whatever page it is on.
PARTS = [
    "io.k8s.api.authentication.v1.TokenRequest",
    "io.k8s.api.autoscaling.v1.Scale",
    "io.k8s.api.policy.v1.Eviction",
]
MORE = ["DeleteOptions", "Status", "Patch", "ObjectMeta", "ListMeta", "APIResourceList", "WatchEvent"]


def deflate(path, data):
    packer = zlib.compressobj(9, zlib.DEFLATED, -15, 9)
    packed = packer.compress(data) + packer.flush()
    path.write_bytes(packed)
    print(f"{path.name}: {len(data)} bytes, {len(packed)} packed")


def types(what):
    with tempfile.TemporaryDirectory() as folder:
        for source in ["types.go", "pairs.go"]:
            shutil.copy(HERE / source, folder)
        module = "module types\n\ngo 1.24\n\nrequire (\n"
        for name in ["api", "apimachinery", "apiextensions-apiserver"]:
            module += f"\tk8s.io/{name} {LIBRARIES}\n"
        (pathlib.Path(folder) / "go.mod").write_text(module + ")\n")
        env = os.environ | {"GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local"}
        return subprocess.run(["go", "run", ".", what], cwd=folder, env=env, check=True, capture_output=True).stdout


def page(name):
    config = json.loads(pathlib.Path(os.environ["KUBECONFIG"]).read_text())
    server, token = config["clusters"][0]["cluster"], config["users"][0]["user"]["token"]
    trust = ssl.create_default_context(cafile=server["certificate-authority"])
    address = f"{server['server']}/openapi/v3/{name.replace('__', '/')}"
    request = urllib.request.Request(address, headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, context=trust) as answer:
        return json.loads(answer.read())


def referred(schema):
    return re.findall(re.escape(REFERENCE) + r'([^"]+)', json.dumps(schema))


def openapi():
    kept = {}
    for name, kinds in PAGES.items():
        schemas = page(name)["components"]["schemas"]
        group = name.split("__")[1] if name.startswith("apis__") else ""
        wanted = []
        for known, schema in schemas.items():
            own = [gvk for gvk in schema.get("x-kubernetes-group-version-kind", []) if gvk["group"] == group]
            words = {kind for gvk in own for kind in [gvk["kind"], gvk["kind"].removesuffix("List")]}
            is_common = ".meta.v1." in known and known.rsplit(".", 1)[1] in MORE
            if words & set(kinds.split()) or is_common or known in PARTS:
                wanted.append(known)
        while wanted:
            one = wanted.pop()
            if one not in kept:
                kept[one] = schemas[one]
                wanted += referred(schemas[one])
    return json.dumps(kept, sort_keys=True, separators=(",", ":")).encode()


deflate(HERE / "types.z", types("types"))
deflate(HERE / "pairs.z", types("pairs"))
deflate(HERE / "openapi.json.z", openapi())
