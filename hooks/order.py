"""The order of an agent's added hooks: list order, corrected by their constraints."""

from __future__ import annotations

from collections.abc import Sequence

from everturn.errors import InvalidAgent
from everturn.hooks.hook import Hooks


def ordered(agent: str, hooks: Sequence[Hooks]) -> list[Hooks]:
    """Stable topological order; raises InvalidAgent on a cycle or on two hooks of one name."""
    by_name = {hook.label: hook for hook in hooks}
    if len(by_name) < len(hooks):
        names = [hook.label for hook in hooks]
        double = next(name for name in names if names.count(name) > 1)
        raise InvalidAgent(f"agent {agent!r} has two hooks named {double!r}; give one of them another `name`")
    waits_for = {name: set[str]() for name in by_name}
    for name, hook in by_name.items():
        waits_for[name].update(other for other in hook.order.after if other in by_name)
        for other in hook.order.before:
            if other in by_name:
                waits_for[other].add(name)
    result: list[Hooks] = []
    while waits_for:
        free = next((name for name, others in waits_for.items() if not others), None)
        if free is None:
            cycle = " → ".join(sorted(waits_for))
            raise InvalidAgent(
                f"agent {agent!r}: the `order` of its hooks contradicts itself ({cycle}); remove one constraint"
            )
        del waits_for[free]
        for others in waits_for.values():
            others.discard(free)
        result.append(by_name[free])
    return result
