"""All scenarios by name, and how a request chooses one."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from everturn.activities.scripted.ask import Ask, BadScript, Script, parse_directive, parse_scripts
from everturn.activities.scripted.demo import demo_moves
from everturn.activities.scripted.moves import Move
from everturn.activities.scripted.scenarios import failures, oddities, plain, reasoning, streams, tools

Scenario = Callable[[Ask, Script], Iterable[Move]]

_SCENARIOS: dict[str, Scenario] = {
    **plain.SCENARIOS,
    **tools.SCENARIOS,
    **streams.SCENARIOS,
    **oddities.SCENARIOS,
    **failures.SCENARIOS,
    **reasoning.SCENARIOS,
}
_DEMO_WORD_SECONDS = {"demo": 0.02, "demo-fast": 0.0}


def script_moves(ask: Ask) -> Iterable[Move]:
    """The moves that answer this request; raises BadScript if its model, scenario or a parameter is unknown.

    Every scenario takes `times` and `then`: it plays for the first `times` attempts at a conversation (1 if only
    `then` is given), and the scenario `then` (default `ok`) plays afterwards.
    """
    if ask.model in _DEMO_WORD_SECONDS:
        return demo_moves(ask, _DEMO_WORD_SECONDS[ask.model])
    script = _chosen(ask)
    if ("times" in script.params or "then" in script.params) and ask.attempt > script.count("times", 1):
        script = Script(script.text("then", "ok"), script.params)
    scenario = _SCENARIOS.get(script.name)
    if scenario is None:
        raise BadScript(f"no scenario is named {script.name!r}")
    return list(scenario(ask, script)) if script.name not in streams.ENDLESS else scenario(ask, script)


def _chosen(ask: Ask) -> Script:
    if ask.model == "scripted":
        directive = ask.directive()
        scripts = parse_directive(directive) if directive else [Script("echo")]
    else:
        scripts = parse_scripts(ask.model)
    return scripts[min(ask.step, len(scripts) - 1)]
