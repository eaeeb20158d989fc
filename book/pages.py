"""mdBook preprocessor (`book.toml`): pages from other folders, links out of the book, formulas, and the help of the command.

- A page that is one line `{{page ../FILE.md}}` becomes that file, whose links are relative to its own folder.
- A link to a file outside `docs/` leads to the repository, since the book holds `docs/` alone.
- `$$…$$` and `$…$` become MathML, which browsers show without a script or a font from elsewhere.
- `{{rustdoc ../FILE.rs}}` becomes the documentation of that module, and `{{boards}}` a list of the boards, each a page of its own.
- `{{commands}}` becomes the help of every command of the program that the variable FABSWARM names.
"""

import html
import json
import os
import pathlib
import re
import subprocess
import sys
import tomllib

DOCS = pathlib.Path(__file__).resolve().parents[1] / "docs"
REPOSITORY = "https://github.com/fabswarm/fabswarm/blob/main/"
# Code keeps its dollars and brackets.
CODE = re.compile(r"(```.*?```|`[^`\n]*`)", re.S)


def formula(match):
    from latex2mathml.converter import convert

    display, inline = match.groups()
    tex = html.unescape(display or inline).replace("\n", " ").strip()
    return convert(tex, display="block" if display else "inline")


def linked(text, folder, page):
    """The text with links that were relative to `folder` and are now relative to `page`, a folder of the book."""

    def moved(match):
        target = match[1]
        if re.match(r"[a-z]+:|#", target):
            return match[0]
        path, hash, anchor = target.partition("#")
        path = (folder / path).resolve()
        stands_for = f"{{{{page ../{path.relative_to(DOCS.parent)}}}}}"
        inside = [other for other in DOCS.glob("*.md") if stands_for in other.read_text()]
        if inside or path.is_relative_to(DOCS):
            return f"]({os.path.relpath(inside[0] if inside else path, page)}{hash}{anchor})"
        return f"]({REPOSITORY}{path.relative_to(DOCS.parent)}{hash}{anchor})"

    return re.sub(r"\]\(([^)\s]+)\)", moved, text)


def commands(words=()):
    program = os.environ.get("FABSWARM")
    if not program:
        return "Build the book with the variable `FABSWARM` to see the help of every command here."
    text = subprocess.run([program, *words, "--help"], capture_output=True, text=True, check=True).stdout
    page = f"## fabswarm {' '.join(words)}\n\n```text\n{text.strip()}\n```\n\n"
    listed = re.search(r"^Commands:\n(.*?)\n\n", text, re.S | re.M)
    names = re.findall(r"^  (\w[\w-]*) ", listed[1], re.M) if listed else []
    return page + "".join(commands((*words, name)) for name in names if name != "help")


def rustdoc(path):
    lines = [line[4:] for line in path.read_text().splitlines() if line.startswith("//!")]
    # Examples keep their code and lose the lines that rustdoc hides; links to items become their names.
    text = "\n".join(line for line in lines if not line.startswith("# ")).replace("```\nuse ", "```rust\nuse ")
    return re.sub(r"\[([^\]]+)\](?:\((?:super|crate|self)[^)]*\))?(?!\()", r"\1", text)


def flashing(name, board):
    if "flash_note" in board:
        return board["flash_note"]
    flash = f"`fabswarm boards flash --swarm swarm.toml --board {name}"
    if "uf2" in board:
        return f"hold BOOTSEL while you plug it in, then {flash} --agent 0`"
    if board.get("boot_loader") == "esp-idf":
        return f"plug its USB port in, then {flash} --all`; without control lines hold BOOT and press RESET first"
    return f"plug its debug probe in, then {flash} --all`"


def boards():
    """A chapter for every board: its line in boards.md, how it is flashed, its pins, and its file."""
    heads, rows = None, {}
    for line in (DOCS / "boards.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        heads = heads or (cells if cells[0] == "board" else None)
        rows.setdefault(cells[0].strip("`"), cells)
    for path in sorted((DOCS.parent / "boards").glob("*/board.toml")):
        name, board = path.parent.name, tomllib.loads(path.read_text())
        facts = list(zip(heads, rows.get(name, [])))[1:]
        if facts and "chip" in board:
            facts.append(("to flash it", flashing(name, board)))
        radio = board.get("radio", {}).items()
        facts += [("radio", ", ".join(f"`{key} = {value}`" for key, value in radio if key != "jitter"))] if radio else []
        facts += [(f"pin `{pin}`", wired) for pin, wired in board.get("pins", {}).items()]
        table = "\n".join(f"| {fact} | {value} |" for fact, value in [("", ""), ("---", "---"), *facts])
        program = path.parent / "src/main.rs"
        about = rustdoc(program) if program.exists() else ""
        text = f"# {name}\n\n{about}\n\n{table}\n\n```toml\n{path.read_text().strip()}\n```\n"
        place = {"path": f"boards/{name}.md", "source_path": None, "number": None, "parent_names": []}
        yield {"Chapter": {"name": name, "content": text, "sub_items": [], **place}}


def rendered(text, page):
    folder = page
    other = re.fullmatch(r"\{\{page (\S+)\}\}\s*", text)
    if other:
        path = DOCS / other[1]
        text, folder = path.read_text(), path.parent
    text = re.sub(r"\{\{rustdoc (\S+)\}\}", lambda match: rustdoc(DOCS / match[1]), text)
    names = [board["Chapter"]["name"] for board in boards()] if "{{boards}}" in text else []
    text = text.replace("{{boards}}", "\n".join(f"- [{name}](boards/{name}.md)" for name in names))
    parts = CODE.split(linked(text, folder, page))
    # Odd parts are code.
    parts[::2] = [re.sub(r"\$\$(.+?)\$\$|\$([^$\n]+)\$", formula, part, flags=re.S) for part in parts[::2]]
    return "".join(parts).replace("{{commands}}", commands() if "{{commands}}" in text else "")


def visit(items):
    for item in items:
        if isinstance(item, dict) and "Chapter" in item:
            chapter = item["Chapter"]
            chapter["sub_items"] += boards() if "{{boards}}" in chapter["content"] else []
            chapter["content"] = rendered(chapter["content"], (DOCS / chapter["path"]).parent)
            visit(chapter["sub_items"])


if sys.argv[1:2] == ["supports"]:
    sys.exit(0 if sys.argv[2] == "html" else 1)
book = json.load(sys.stdin)[1]
visit(book.get("items", book.get("sections")))
json.dump(book, sys.stdout)
