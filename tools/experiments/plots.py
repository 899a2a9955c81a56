"""Plots as SVG text, the same bytes for the same numbers: grouped bars over names, and lines over numbers."""

import math
from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 72, 130, 36, 52
COLOURS = ("#c44e52", "#4c72b0", "#55a868", "#8172b2", "#ccb974", "#64b5cd", "#8c8c8c", "#dd8452")
GAP = 0.2  # of a group of bars


@dataclass
class Series:
    name: str
    points: list  # (x, y); x is a name for bars, a number for lines; y is None where there is nothing


@dataclass
class Plot:
    title: str
    x_title: str
    y_title: str
    series: list
    log_y: bool = False
    log_x: bool = False

    def bars(self):
        names = list(dict.fromkeys(x for series in self.series for x, _ in series.points))
        canvas = Canvas(self, self.values())
        group = canvas.width / max(1, len(names))
        bar = group * (1 - GAP) / max(1, len(self.series))
        for place, name in enumerate(names):
            left = LEFT + place * group + group * GAP / 2
            canvas.x_label(LEFT + (place + 0.5) * group, str(name))
            for number, series in enumerate(self.series):
                value = dict(series.points).get(name)
                if value is not None:
                    canvas.bar(left + number * bar, bar, value, COLOURS[number % len(COLOURS)])
        return canvas.text()

    def lines(self):
        xs = sorted({x for series in self.series for x, _ in series.points})
        canvas = Canvas(self, self.values())
        across = Scale(xs[0], xs[-1], self.log_x)
        for x in xs:
            canvas.x_label(LEFT + across.part(x) * canvas.width, readable(x))
        for number, series in enumerate(self.series):
            points = [(LEFT + across.part(x) * canvas.width, canvas.y(value))
                      for x, value in series.points if value is not None]
            canvas.line(points, COLOURS[number % len(COLOURS)])
        return canvas.text()

    def values(self):
        return [y for series in self.series for _, y in series.points if y is not None]


class Scale:
    """From a range of numbers to 0..1; a logarithmic one begins and ends with a power of ten on the y axis."""

    def __init__(self, low, high, log):
        self.low, self.high, self.log = low, high, log

    def part(self, value):
        if self.high == self.low:
            return 0.5
        if self.log:
            return (math.log10(max(value, self.low)) - math.log10(self.low)) / (
                math.log10(self.high) - math.log10(self.low))
        return (value - self.low) / (self.high - self.low)


def y_scale(values, log):
    """=> the scale and its ticks"""
    high = max(values + [0])
    if log:
        positive = [value for value in values if value > 0] or [1]
        first, last = math.floor(math.log10(min(positive))), math.ceil(math.log10(max(positive)))
        last = max(last, first + 1)
        return Scale(10.0 ** first, 10.0 ** last, True), [10.0 ** power for power in range(first, last + 1)]
    step = nice_step(high / 5 if high else 0.2)
    count = max(1, math.ceil(high / step - 1e-9))
    return Scale(0, count * step, False), [number * step for number in range(count + 1)]


def nice_step(rough):
    power = 10.0 ** math.floor(math.log10(rough))
    return next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * (1 - 1e-9))


def readable(value):
    if value >= 1e6:
        return f"{value / 1e6:g}M"
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:g}"


class Canvas:
    """The frame, the y axis and the legend; what is drawn comes on top."""

    def __init__(self, plot, values):
        self.width, self.height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
        self.scale, ticks = y_scale(values, plot.log_y)
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
            f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
            label(LEFT, 20, plot.title, 'font-size="14" font-weight="bold"'),
            label(LEFT + self.width / 2, HEIGHT - 12, plot.x_title, 'text-anchor="middle"'),
            label(16, TOP + self.height / 2, plot.y_title,
                  f'text-anchor="middle" transform="rotate(-90 16 {TOP + self.height / 2:.1f})"')]
        for tick in ticks:
            y = self.y(tick)
            self.parts += [f'<path d="M{LEFT} {y:.1f}H{LEFT + self.width}" stroke="#dddddd"/>',
                           label(LEFT - 6, y + 4, readable(tick), 'text-anchor="end"')]
        for number, series in enumerate(plot.series):
            y = TOP + 8 + 18 * number
            colour = COLOURS[number % len(COLOURS)]
            self.parts += [f'<rect x="{WIDTH - RIGHT + 12}" y="{y}" width="10" height="10" fill="{colour}"/>',
                           label(WIDTH - RIGHT + 27, y + 9, series.name, "")]

    def y(self, value):
        return TOP + self.height * (1 - max(0.0, self.scale.part(value)))

    def x_label(self, x, text):
        self.parts.append(label(x, TOP + self.height + 18, text, 'text-anchor="middle"'))

    def bar(self, x, width, value, colour):
        y = self.y(value)
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" '
                          f'height="{TOP + self.height - y:.1f}" fill="{colour}"/>')

    def line(self, points, colour):
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        self.parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points]

    def text(self):
        return "\n".join(self.parts + ["</svg>"]) + "\n"


def label(x, y, text, attributes):
    return f'<text x="{x:.1f}" y="{y:.1f}" {attributes}>{escape(text)}</text>'
