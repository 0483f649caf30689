#!/usr/bin/env python3
"""Writes the pod template schema of the CRD out of the Kubernetes OpenAPI document.

Usage: extract.py OPENAPI_V3_CORE_V1.json > src/crd/pod_template.json

The result is data: it carries no descriptions and nothing that belongs to this project. References
are inlined and everything is brought into the structural form that apiextensions.k8s.io/v1 asks
for. Rules, bounds and enumerations are added by the code that reads the file.
"""

import json
import sys

PREFIX = "#/components/schemas/"
META = "io.k8s.apimachinery.pkg.apis.meta.v1."
QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
ROOT = "io.k8s.api.core.v1.PodTemplateSpec"

QUANTITY_PATTERN = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)

# What survives from a schema node beside its type and children.
KEPT = (
    "enum",
    "format",
    "nullable",
    "required",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
)
FORMATS = ("byte", "date-time", "double", "int32", "int64")


def string_map():
    return {"type": "object", "additionalProperties": {"type": "string"}}


def embedded_metadata():
    """Metadata of a template: the parts that reach the pod. Generators write a null timestamp."""
    return {
        "type": "object",
        "properties": {
            "annotations": string_map(),
            "creationTimestamp": {"type": "string", "format": "date-time", "nullable": True},
            "finalizers": {"type": "array", "items": {"type": "string"}},
            "labels": string_map(),
            "name": {"type": "string"},
            "namespace": {"type": "string"},
        },
    }


SPECIAL = {
    QUANTITY: lambda: {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "pattern": QUANTITY_PATTERN,
        "x-kubernetes-int-or-string": True,
    },
    INT_OR_STRING: lambda: {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": True,
    },
    META + "ObjectMeta": embedded_metadata,
}


def resolve(node):
    """The name a node refers to, if it does nothing else."""
    if "$ref" in node:
        return node["$ref"].removeprefix(PREFIX)
    if len(node.get("allOf", ())) == 1 and "$ref" in node["allOf"][0]:
        return node["allOf"][0]["$ref"].removeprefix(PREFIX)
    return None


def structural(schemas, node, trail=()):
    name = resolve(node)
    if name in SPECIAL:
        return SPECIAL[name]()
    if name is not None:
        if name in trail:
            sys.exit(f"{name} contains itself and cannot be inlined")
        inner = structural(schemas, schemas[name], (*trail, name))
        inner.update({key: node[key] for key in KEPT if key in node})
        return inner
    if "oneOf" in node or "anyOf" in node or "allOf" in node:
        sys.exit(f"unknown composition below {'/'.join(trail)}: {sorted(node)}")

    result = {key: node[key] for key in KEPT if key in node}
    if result.get("format") not in FORMATS:
        result.pop("format", None)
    result["type"] = node["type"]
    if "properties" in node:
        result["properties"] = {
            key: structural(schemas, child, trail) for key, child in node["properties"].items()
        }
    if "additionalProperties" in node:
        result["additionalProperties"] = structural(schemas, node["additionalProperties"], trail)
    if "items" in node:
        result["items"] = structural(schemas, node["items"], trail)
        complete_map_keys(schemas, node, result)
    return result


def complete_map_keys(schemas, node, result):
    """Keys of a list map must be required or have a default; other defaults are left out, so that
    what is stored stays what was written."""
    keys = node.get("x-kubernetes-list-map-keys", ())
    source = schemas[resolve(node["items"])] if keys else {}
    for key in keys:
        if key in source.get("required", ()):
            continue
        default = source["properties"][key].get("default")
        if default is None:
            sys.exit(f"list map key {key} is neither required nor has a default")
        result["items"]["properties"][key]["default"] = default


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as source:
        schemas = json.load(source)["components"]["schemas"]
    template = structural(schemas, schemas[ROOT])
    # Pods cannot be created with these; a tenth of the schema less.
    template["properties"]["spec"]["properties"].pop("ephemeralContainers")
    json.dump(template, sys.stdout, separators=(",", ":"), sort_keys=True)
    sys.stdout.write("\n")


main()
