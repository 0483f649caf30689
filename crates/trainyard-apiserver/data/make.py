"""Makes types.z and openapi.json.z from the Kubernetes sources of one release.

    python3 make.py            needs Go; the modules are fetched as Go fetches them

types.z         the Go types behind the built-in kinds (types.go tells what is noted)
openapi.json.z  the OpenAPI v3 schemas that the built-in kinds reach, descriptions included

Both are raw deflate streams.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import zlib

KUBERNETES = "v1.36.3"
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


def types():
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(HERE / "types.go", pathlib.Path(folder) / "main.go")
        module = "module types\n\ngo 1.24\n\nrequire (\n"
        for name in ["api", "apimachinery", "apiextensions-apiserver"]:
            module += f"\tk8s.io/{name} {LIBRARIES}\n"
        (pathlib.Path(folder) / "go.mod").write_text(module + ")\n")
        env = os.environ | {"GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local"}
        return subprocess.run(["go", "run", "."], cwd=folder, env=env, check=True, capture_output=True).stdout


def sources():
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "go.mod").write_text("module sources\n\ngo 1.24\n")
        command = ["go", "mod", "download", "-json", f"k8s.io/kubernetes@{KUBERNETES}"]
        told = subprocess.run(command, cwd=folder, check=True, capture_output=True).stdout
        return pathlib.Path(json.loads(told)["Dir"]) / "api/openapi-spec/v3"


def referred(schema):
    return re.findall(re.escape(REFERENCE) + r'([^"]+)', json.dumps(schema))


def openapi():
    folder = sources()
    kept = {}
    for page, kinds in PAGES.items():
        schemas = json.loads((folder / f"{page}_openapi.json").read_text())["components"]["schemas"]
        group = page.split("__")[1] if page.startswith("apis__") else ""
        wanted = []
        for name, schema in schemas.items():
            own = [gvk for gvk in schema.get("x-kubernetes-group-version-kind", []) if gvk["group"] == group]
            words = {kind for gvk in own for kind in [gvk["kind"], gvk["kind"].removesuffix("List")]}
            is_common = ".meta.v1." in name and name.rsplit(".", 1)[1] in MORE
            if words & set(kinds.split()) or is_common or name in PARTS:
                wanted.append(name)
        while wanted:
            name = wanted.pop()
            if name not in kept:
                kept[name] = schemas[name]
                wanted += referred(schemas[name])
    return json.dumps(kept, sort_keys=True, separators=(",", ":")).encode()


deflate(HERE / "types.z", types())
deflate(HERE / "openapi.json.z", openapi())
