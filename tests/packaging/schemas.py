# SPDX-License-Identifier: Apache-2.0
"""kubeconform on manifests, with the schemas that a real API server publishes."""
import json
import re
import subprocess

import cluster as peers

# Of others: their CustomResourceDefinitions are not in the API server.
SKIPPED = ("NodeFeatureRule", "PodMonitor")
PREFIX = "#/components/schemas/"


def kinds_of(text):
    """(apiVersion, kind) of each object in YAML."""
    found = (re.findall(r"^(?:apiVersion|kind): *(\S+)", one, re.M) for one in re.split(r"^---", text, flags=re.M))
    return {tuple(sorted(words, key=lambda word: word[0].isupper())) for words in found if words}


def closed(schema):
    """The schema of an object as it is, with references into one file; no object has other fields than those it names."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: closed(value) for key, value in schema.items() if key != "properties"}
    if "properties" in schema:
        made["properties"] = {name: closed(value) for name, value in schema["properties"].items()}
        made.setdefault("additionalProperties", False)
    if schema.get("$ref", "").startswith(PREFIX):
        made["$ref"] = "#/definitions/" + schema["$ref"].removeprefix(PREFIX)
    return made


def write_schemas(server, directory, version, kinds):
    """`kinds` of the group version `version`, named as kubeconform asks for them."""
    served = server.good("kubectl", "get", "--raw", f"/openapi/v3/{'apis' if '/' in version else 'api'}/{version}")
    definitions = {name: closed(schema) for name, schema in json.loads(served)["components"]["schemas"].items()}
    group, _, last = version.rpartition("/")
    suffix = f"-{group.split('.')[0]}-{last}" if group else f"-{last}"
    for name, schema in definitions.items():
        for one in schema.get("x-kubernetes-group-version-kind", ()):
            if one["kind"] in kinds and one["group"] == group:
                (directory / f"{one['kind'].lower()}{suffix}.json").write_text(
                    json.dumps({"$ref": f"#/definitions/{name}", "definitions": definitions}))


def judge(directory, text):
    """What kubeconform says of YAML: whether all of it is valid, and its list of resources."""
    ended = subprocess.run([peers.programs("kubeconform") / "kubeconform", "-strict", "-verbose", "-output", "json", "-skip", ",".join(SKIPPED),
                            "-schema-location", str(directory / "{{.ResourceKind}}{{.KindSuffix}}.json"), "-"],
                           input=text, text=True, capture_output=True)
    return ended.returncode == 0, json.loads(ended.stdout)["resources"]


def check(server, directory, texts):
    """All objects of `texts` are valid, and one with a wrong field is not. Returns how many are, and the kinds that were
    skipped."""
    directory.mkdir()
    kinds = set().union(*map(kinds_of, texts))
    for version in {version for version, kind in kinds if kind not in SKIPPED}:
        write_schemas(server, directory, version, {kind for other, kind in kinds if other == version})
    valid, skipped = 0, set()
    for text in texts:
        is_valid, found = judge(directory, text)
        assert is_valid, [one for one in found if one["status"] not in ("statusValid", "statusSkipped")]
        assert {one["kind"] for one in found} == {kind for _, kind in kinds_of(text)}, found
        valid += sum(one["status"] == "statusValid" for one in found)
        skipped |= {one["kind"] for one in found if one["status"] == "statusSkipped"}
    is_valid, found = judge(directory, texts[0].replace("imagePullPolicy", "imagePullPolice", 1))
    assert not is_valid and any("imagePullPolice" in one["msg"] for one in found if one["status"] == "statusInvalid"), found
    return valid, skipped
