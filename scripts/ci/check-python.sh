#!/bin/bash
# The Python that is put into users' processes (inject/python): it compiles on Python 3.8, and
# imports the standard library only; torch and torch_npu only inside of functions.
cd "$(dirname "$0")/../.." || exit 1
if ! command -v python3 >/dev/null; then
	echo "python: skipped, python3 is not installed"
	exit 77
fi
exec python3 - inject/python tests/e2e tests/fakes scripts <<'EOF'
"""Arguments: what is injected, then what only has to compile."""
import ast
import os
import sys

INJECTED, OTHERS = sys.argv[1], sys.argv[2:]
OWN = {"npuprof_inject", "sitecustomize"}
THEIRS = {"torch", "torch_npu"}  # of the user's program: looked for when it has them
# Private ones that are used on purpose.
STANDARD = set(getattr(sys, "stdlib_module_names", ())) | {"_frozen_importlib"}
problems, files = [], 0


def python_files(top):
    for path, _, names in os.walk(top):
        yield from (os.path.join(path, name) for name in sorted(names) if name.endswith(".py"))


def imports(tree):
    """(line, module, is it at the top of its module)."""
    top = {id(node) for node in tree.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for one in node.names:
                yield node.lineno, one.name, id(node) in top
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.lineno, node.module, id(node) in top


def parse(path, version):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    try:
        tree = ast.parse(text, path, feature_version=version)
        compile(text, path, "exec", dont_inherit=True)
        return tree
    except SyntaxError as error:
        problems.append(f"{path}:{error.lineno}: {error.msg}")
    return None


for path in python_files(INJECTED):
    files += 1
    tree = parse(path, (3, 8))
    for line, module, at_top in imports(tree) if tree else ():
        first = module.partition(".")[0]
        if first in THEIRS and not at_top or first in OWN:
            continue
        if STANDARD and first not in STANDARD:
            problems.append(f"{path}:{line}: imports {module}, which is not of the standard library")
for top in OTHERS:
    for path in python_files(top):
        files += 1
        parse(path, (3, 11))
for problem in problems:
    print("python:", problem)
if files < 20:
    print(f"python: only {files} files were found")
    problems.append("files")
if problems:
    sys.exit("python: see above")
print(f"python: ok, {files} files")
EOF
