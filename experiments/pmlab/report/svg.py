"""SVG of a figure: small, and for the page with colours that follow the reader's light or dark screen."""

import io
import re
from dataclasses import dataclass

from . import style


def _number(match):
    text = f"{float(match[0]):.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def _lines(data):
    """A path with its straight lines along an axis as H and V."""
    at, out = (None, None), []
    for command, rest in re.findall(r"([A-Za-z])([^A-Za-z]*)", data):
        numbers = rest.split()
        if command == "L" and at[1] == numbers[1]:
            out.append(f"H{numbers[0]}")
        elif command == "L" and at[0] == numbers[0]:
            out.append(f"V{numbers[1]}")
        else:
            out.append(command + " ".join(numbers))
        at = tuple(numbers[-2:]) if len(numbers) > 1 else (None, None)
    return "".join(out).replace(" -", "-")


def _path(match):
    return f' d="{_lines(re.sub(r"-?[0-9]+[.][0-9]+", _number, match[1]))}"'


def _coordinates(match):
    return f' {match[1]}="{re.sub(r"-?[0-9]+[.][0-9]+", _number, match[2])}"'


def _rule(declarations):
    """Declarations without what is the default, the font's long list of substitutes shortened to its size."""
    found = []
    for part in declarations.split(";"):
        name, _, value = (text.strip() for text in part.partition(":"))
        if name == "font":
            bold = re.search("bold|700", value)
            found.append(f"font-size:{re.search(r'[0-9.]+px', value)[0]}" + (";font-weight:bold" if bold else ""))
        elif (name, value) not in (("stroke-linejoin", "miter"), ("text-anchor", "start"),
                                   ("stroke-dashoffset", "0")) and name:
            found.append(f"{name}:{value}")
    return ";".join(found)


DEFAULTS = ("svg *{stroke-linejoin:round;stroke-linecap:butt}"
            "svg{font-family:'DejaVu Sans',Verdana,sans-serif;fill:#1a1a1a}")

def _name(number):
    """a, b, ... z, aa, ab, ...: each file has a class for each rule, and most of a picture is their names."""
    name = ""
    while number >= 0:
        number, letter = number // 26 - 1, number % 26
        name = chr(ord("a") + letter) + name
    return name


def _without_plain_groups(text):
    """Removes groups without attributes, and keeps their content."""
    kept, out = [], []
    for piece in re.split(r"(<g/>|<g\b[^>]*>|</g>|<defs></defs>)", text):
        if piece in ("<g/>", "<defs></defs>"):
            continue
        if piece.startswith("<g") and not piece.startswith("<glyph"):
            kept.append(piece != "<g>")
            if not kept[-1]:
                continue
        elif piece == "</g>" and not kept.pop():
            continue
        out.append(piece)
    return "".join(out)


def _small(text):
    """(SVG without its header, {rule: class}): the same picture in a fourth of the letters."""
    header = r"<\?xml.*?\?>|<!DOCTYPE.*?>|<!--.*?-->|<metadata>.*?</metadata>|<defs>\s*<style.*?</style>\s*</defs>"
    text = re.sub(header, "", text, flags=re.S)
    text = re.sub(r' d="([^"]*)"', _path, text)
    text = re.sub(r' (x|y|width|height|transform)="([^"]*)"', _coordinates, text)
    # Nothing is drawn beyond its axes.
    text = re.sub(r' clip-path="[^"]*"|<clipPath.*?</clipPath>', "", text, flags=re.S)
    text = re.sub(r' transform="rotate\(-?0 [^"]*"', "", text)
    for nothing in re.findall(r'<path id="(\w+)" d="M0 0[HVL]0(?: 0)?"', text):
        text = re.sub(rf'<use xlink:href="#{nothing}"[^>]*/>|<path id="{nothing}"[^>]*/>', "", text)
    used = set(re.findall(r"#([A-Za-z][\w.-]*)", re.sub(r"#[0-9a-f]{6}\b", "", text)))
    text = re.sub(r' id="([^"]*)"', lambda m: m[0] if m[1] in used else "", text)
    rules = {}

    def named(match):
        rule = _rule(match[1])
        if not rule:
            return ""
        return f' class="{rules.setdefault(rule, _name(len(rules)))}"'
    text = re.sub(r' style="([^"]*)"', named, text)
    text = re.sub(r">\s+<", "><", text)
    return _without_plain_groups(text.strip()), rules


def _without_definitions(text):
    """(text, {id: definition}): markers. Their identifiers are hashes of what they are."""
    found = {}

    def taken(match):
        found[match[1]] = match[0]
        return ""
    return re.sub(r'<path id="(\w+)"[^>]*/>', taken, text).replace("<defs></defs>", ""), found


@dataclass
class Drawing:
    """A picture in the pieces that a page shares among all of its pictures."""

    text: str  # without rules and definitions
    rules: dict  # rule -> class
    definitions: dict  # id -> marker

    @property
    def width(self):
        """In points."""
        return float(re.search(r'width="([0-9.]+)pt"', self.text)[1])

    def file(self):
        """A file of its own, which other programs read: no variables."""
        rules = DEFAULTS + "".join(f".{n}{{{r}}}" for r, n in self.rules.items())
        definitions = "".join(self.definitions.values())
        head, rest = self.text.split(">", 1)
        style = f"<style>{rules}</style><defs>{definitions}</defs>"
        return f'<?xml version="1.0" encoding="utf-8"?>\n{head}>{style}{rest}\n'


def drawn(figure):
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    # Drawn again, as PDF, it stays as it is.
    figure.set_layout_engine("none")
    text, rules = _small(text.getvalue())
    text, definitions = _without_definitions(text)
    return Drawing(text, rules, definitions)


def variable(colour):
    return f"--c{colour[1:]}"


class Shared:
    """Rules and definitions of all pictures of one page, with variables in the place of colours."""

    def __init__(self):
        self._names, self._definitions = {}, {}

    def on_page(self, drawing):
        """The picture as the page has it: its classes are the page's."""
        new = {old: self._names.setdefault(rule, f"s{len(self._names):x}") for rule, old in drawing.rules.items()}

        def renamed(text):
            text = re.sub(r' class="([^"]*)"', lambda m: f' class="{new[m[1]]}"', text)
            return re.sub(r' xmlns(?::xlink)?="[^"]*"| version="[^"]*"', "", text).replace("xlink:href", "href")
        for name, definition in drawing.definitions.items():
            self._definitions.setdefault(name, renamed(definition))
        return renamed(drawing.text)

    def definitions(self):
        """Markers, to stand in the page once; a closed part of the page must not hide them from the others."""
        return f'<svg class=shared aria-hidden=true><defs>{"".join(self._definitions.values())}</defs></svg>'

    def rules(self):
        def vary(rule):
            return re.sub(r"#[0-9a-f]{6}\b", lambda m: f"var({variable(m[0])})", rule)
        return palette() + ".shared{position:absolute;width:0;height:0}" + DEFAULTS + "".join(
            f".{name}{{{vary(rule)}}}" for rule, name in self._names.items())


def palette():
    """CSS: the variables of all colours, light and dark."""
    light = "".join(f"{variable(c)}:{c};" for c in style.DARK)
    dark = "".join(f"{variable(c)}:{d};" for c, d in style.DARK.items())
    return f":root{{{light}}}@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}"
