"""Writes src/formats/onnx/operator-table.ts from the operator schemas of an installed `onnx` package.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install onnx && /tmp/venv/bin/python scripts/derive-operators.py

A row is one version of one operator: name;since;inputs;outputs;type variables. An input or output is a type variable or a
type; `?` optional, `*` variadic with one type, `**` variadic with types of their own. A variable names one of the type sets.
"""

from pathlib import Path

import onnx
from onnx import defs

DOMAINS = ["", "ai.onnx.ml"]
TARGET = Path(__file__).resolve().parent.parent / "src" / "onnx" / "operator-table.ts"
NUMPY_NAMES = {
    "float": "float32",
    "double": "float64",
    "float8e4m3fn": "float8_e4m3fn",
    "float8e4m3fnuz": "float8_e4m3fnuz",
    "float8e5m2": "float8_e5m2",
    "float8e5m2fnuz": "float8_e5m2fnuz",
    "float4e2m1": "float4_e2m1fn",
    "float8e8m0": "float8_e8m0fnu",
}


def type_name(text):
    """tensor(float) is float32; seq(tensor(float)) is seq(float32); map(int64, float) is map(int64,float32)."""
    text = text.replace(" ", "")
    if text.startswith("tensor("):
        return NUMPY_NAMES.get(text[7:-1], text[7:-1])
    for wrapper in ("seq", "optional"):
        if text.startswith(wrapper + "("):
            return f"{wrapper}({type_name(text[len(wrapper) + 1:-1])})"
    if text.startswith("map("):
        return f"map({','.join(NUMPY_NAMES.get(part, part) for part in text[4:-1].split(','))})"
    return text


def formal(parameter, variables):
    name = parameter.type_str
    text = name if name in variables else type_name(name)
    if parameter.option == defs.OpSchema.FormalParameterOption.Optional:
        return text + "?"
    if parameter.option == defs.OpSchema.FormalParameterOption.Variadic:
        return text + ("*" if parameter.is_homogeneous else "**")
    return text


def main():
    sets, rows = {}, {domain: [] for domain in DOMAINS}
    schemas = [s for s in defs.get_all_schemas_with_history() if s.domain in DOMAINS]
    for schema in sorted(schemas, key=lambda s: (s.domain, s.name, s.since_version)):
        if schema.deprecated:
            rows[schema.domain].append(f"{schema.name};{schema.since_version};-")
            continue
        variables = {}
        for constraint in schema.type_constraints:
            key = " ".join(sorted(type_name(t) for t in constraint.allowed_type_strs))
            variables[constraint.type_param_str] = sets.setdefault(key, len(sets))
        rows[schema.domain].append(
            ";".join(
                [
                    schema.name,
                    str(schema.since_version),
                    ",".join(formal(p, variables) for p in schema.inputs),
                    ",".join(formal(p, variables) for p in schema.outputs),
                    ",".join(f"{name}={index}" for name, index in variables.items()),
                ]
            )
        )
    lines = [
        f"// Derived by scripts/derive-operators.py from the operator schemas of onnx {onnx.__version__}; do not edit.",
        "",
        "export const typeSets: readonly string[] = [",
        *[f"  '{key}'," for key in sets],
        "];",
        "",
        "/** Per domain, one row per operator version: name;since;inputs;outputs;type variables (`-`: withdrawn). */",
        "export const operatorRows: ReadonlyMap<string, string> = new Map([",
    ]
    for domain in DOMAINS:
        lines += ["  [", f"    '{domain}',", "    `", *rows[domain], "`,", "  ],"]
    lines += ["]);", ""]
    TARGET.write_text("\n".join(lines))


main()
