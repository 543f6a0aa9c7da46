"""Arithmetic in a sentence: found, parsed and computed without `eval`."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction

_WORDS = {
    "plus": "+",
    "minus": "-",
    "times": "*",
    "multiplied by": "*",
    "divided by": "/",
    "over": "/",
    "×": "*",
    "÷": "/",
}
_EXPRESSION = re.compile(r"[-(\d][-+*/().\d\s]*[\d)]")
_TOKEN = re.compile(r"\d+(?:\.\d+)?|[-+*/()]")
_MAX_LENGTH = 200  # also bounds the depth of the parser
_OPERATORS: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
}


def solve(sentence: str) -> tuple[str, str] | None:
    """The first calculation of a text and its result, `("12*7", "84")`; None if there is none that can be computed."""
    text = sentence.lower()
    for word, sign in _WORDS.items():
        text = re.sub(rf"(?<=[\d)]) ?{word} ?(?=[\d(-])", sign, text)
    for found in _EXPRESSION.findall(text[: 10 * _MAX_LENGTH]):
        expression = re.sub(r"\s+", "", found)
        if re.search(r"[\d)][-+*/]", expression) and len(expression) <= _MAX_LENGTH:
            result = _compute(expression)
            if result is not None:
                return expression, result
    return None


def _compute(expression: str) -> str | None:
    parser = _Parser(_TOKEN.findall(expression))
    try:
        value = parser.sum()
    except (ZeroDivisionError, ValueError):
        return None
    if parser.rest:
        return None
    return str(value.numerator) if value.denominator == 1 else f"{float(value):.10g}"


class _Parser:
    """Recursive descent: sum → product → factor."""

    def __init__(self, tokens: list[str]) -> None:
        self.rest = tokens[::-1]

    def sum(self) -> Fraction:
        return self._chain("+-", self._product)

    def _product(self) -> Fraction:
        return self._chain("*/", self._factor)

    def _chain(self, signs: str, operand: Callable[[], Fraction]) -> Fraction:
        value = operand()
        while self.rest and self.rest[-1] in signs:
            value = _OPERATORS[self.rest.pop()](value, operand())
        return value

    def _factor(self) -> Fraction:
        sign = self.rest.pop() if self.rest else ""
        if sign == "-":
            return -self._factor()
        if sign == "(":
            value = self.sum()
            if not self.rest or self.rest.pop() != ")":
                raise ValueError("a bracket is not closed")
            return value
        return Fraction(sign)
