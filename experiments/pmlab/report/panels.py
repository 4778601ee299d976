"""Charts of several panels: one figure for a paper, and for the page a drawing of each panel, which a narrow screen
stacks."""

from dataclasses import dataclass, field
from typing import Callable

from . import style


@dataclass
class Drawn:
    whole: object  # figure: title, key, all panels
    parts: list = field(default_factory=list)  # figures for the page, each a panel; none where the whole is one
    key: object = None  # figure for the page: the key of all parts


@dataclass
class Panels:
    """What the panels of a chart have in common."""

    title: str
    names: list  # names of the panels; [""] where there is only one
    draw: Callable  # (axes, number of the panel, whether the names of rows are shown): draws all but the panel's title
    height: float  # inches of a row of panels
    key: Callable = lambda axes: []  # handles of the key, by the axes

    def _draw(self, axes, number, with_names):
        self.draw(axes, number, with_names)
        if len(self.names) > 1:
            axes.set_title(self.names[number], fontsize=9, loc="left")

    def _whole(self):
        count = len(self.names)
        figure, axes = style.panels(self.height * -(-count // style.COLUMNS), count)
        for number, one in enumerate(axes):
            self._draw(one, number, number % style.COLUMNS == 0)
        handles = self.key(axes)
        style.head(figure, self.title, handles)
        return figure

    def _part(self, number):
        figure, [axes] = style.panels(self.height - style.TITLE_INCHES, 1)
        self._draw(axes, number, True)
        return figure, axes

    def drawn(self):
        whole = self._whole()
        if len(self.names) == 1:
            return Drawn(whole)
        parts, axes = zip(*map(self._part, range(len(self.names))))
        handles = self.key(axes)
        return Drawn(whole, parts, style.key_alone(handles) if handles else None)
