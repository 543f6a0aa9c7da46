"""What the Web UI shows of a turn while it runs and after: its current details, in markdown."""

from __future__ import annotations

from dataclasses import dataclass, field

from temporalio import workflow

from everturn.activities.payloads import CallDone, CallRef, StepDone, TurnOutcome
from everturn.activities.previews import preview
from everturn.turns import TurnError


@dataclass
class TurnView:
    """Collects facts as the turn goes on and shows each change. Holds previews only if the turn allows them."""

    headline: str = "starting"
    steps: dict[int, StepDone] = field(default_factory=dict[int, StepDone])
    calls: dict[int, list[str]] = field(default_factory=dict[int, list[str]])
    error: TurnError | None = None
    answer: str = ""

    def queued(self, behind: str | None) -> None:
        self._now(f"queued behind turn {behind}" if behind else "queued")

    def holding(self) -> None:
        self._now("waits for further messages")

    def step_started(self, step: int, model: str) -> None:
        self._now(f"step {step} is running · {model}")

    def step_done(self, done: StepDone) -> None:
        self.steps[done.step] = done
        self._now(f"step {done.step} is done · {done.finish_reason}")

    def call_done(self, call: CallRef, done: CallDone) -> None:
        step = max(self.steps, default=0)
        self.calls.setdefault(step, []).append(f"{call.label} → {done.state}, {done.duration_ms} ms")
        self._now(self.headline)

    def waiting(self, call: CallRef) -> None:
        self._now(f"waiting for {'its front end' if call.client else 'approval'} · {call.label}")

    def ended(self, outcome: TurnOutcome) -> None:
        self.error = outcome.error
        self.answer = preview(outcome.text, previews=True)
        why = f"by turn {outcome.superseded_by}" if outcome.superseded_by else outcome.stop_reason or "no stop reason"
        self._now(f"{outcome.status} · {why}")

    def _now(self, headline: str) -> None:
        self.headline = headline
        workflow.set_current_details(self.markdown())

    def markdown(self) -> str:
        lines = [f"**{self.headline}**", ""]
        if self.steps:
            lines += ["| step | model | finish | tokens in/out | ms | tool calls |", "|---|---|---|---|---|---|"]
            lines += [self._row(done) for _, done in sorted(self.steps.items())]
        said = self.answer or (self.steps[max(self.steps)].text if self.steps else "")
        if said:
            lines += ["", f"> {_one_line(said)}"]
        if self.error is not None:
            lines += ["", f"Error: `{self.error.type}` {_one_line(self.error.message)}"]
        return "\n".join(lines)

    def _row(self, done: StepDone) -> str:
        calls = "<br>".join(_one_line(line) for line in self.calls.get(done.step, [])) or "–"
        tokens = f"{done.usage.input_tokens}/{done.usage.output_tokens}"
        attempt = f" (attempt {done.attempt})" if done.attempt > 1 else ""
        return (
            f"| {done.step}{attempt} | {done.model} | {done.finish_reason} | {tokens} | {done.duration_ms} | {calls} |"
        )


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
