"""What the benchmarks make of their samples."""

from __future__ import annotations

import json
from pathlib import Path

from temporalio.client import WorkflowHistory

from benchmarks.contenders import FLOOR, OURS, PEERS
from benchmarks.peers.protocol import Tap
from benchmarks.peers.script import Script
from benchmarks.report.page import page
from benchmarks.report.results import Results
from benchmarks.report.table import comparison
from benchmarks.report.targets import Target, targets
from benchmarks.samples import Sample, paired_ratio
from benchmarks.schedule import Budget, rotated
from benchmarks.sections.streaming import token_times
from benchmarks.trace.segments import segments

HISTORIES = Path(__file__).parent.parent / "replay" / "histories"


def turn(contender: str, round_: int, ms: float, error: str | None = None) -> Sample:
    return {"section": "latency", "contender": contender, "round": round_, "tools": 2, "ms": ms, "error": error}


def test_a_ratio_is_the_median_of_the_ratios_within_each_round() -> None:
    pairs = [(100.0, 50.0), (1000.0, 800.0), (10.0, 9.0)]  # the machine changed tenfold, our share did not
    samples = [turn(FLOOR, n, floor) for n, (floor, _) in enumerate(pairs)]
    samples += [turn(OURS, n, ours) for n, (_, ours) in enumerate(pairs)]
    assert paired_ratio(samples, "ms", OURS, FLOOR, section="latency") == 0.8


def test_a_failed_turn_counts_nowhere_and_is_told() -> None:
    samples = [turn(FLOOR, 0, 100), turn(OURS, 0, 80), turn(OURS, 1, 5, error="it broke"), turn(FLOOR, 1, 100)]
    assert paired_ratio(samples, "ms", OURS, FLOOR) == 0.8
    written = page(Results("2000-01-01 00:00", {"system": "", "cores": 1, "python": "", "load_before": 0}, {}, samples))
    assert "everturn, latency: 1 failed, first: it broke" in written


def test_each_contender_is_first_once_before_one_is_first_again() -> None:
    firsts = [rotated(PEERS, number)[0] for number in range(len(PEERS))]
    assert sorted(firsts) == sorted(PEERS)


def test_a_budget_without_time_still_allows_one_round() -> None:
    assert list(Budget(5, 0).rounds()) == [0]


def test_a_script_survives_its_way_through_a_message() -> None:
    script = Script("t-1", tools=5, tokens=3, gap_ms=20, token_bytes=10, message_bytes=500)
    assert len(script.message) == 500
    assert Script.read(f"before {script.message} after") == script
    assert script.words[2] == "w0002xxxx "


def test_a_viewer_counts_tokens_that_arrive_in_pieces_and_forgets_void_ones() -> None:
    tap = Tap()
    for piece in ("w00", "00 w0001", " w0002"):
        tap.text(piece)
    assert [number for number, _ in tap.tokens] == [0, 1]
    tap.reset()
    tap.text("w0000 ")
    assert [number for number, _ in tap.tokens] == [0]


def test_a_tokens_lag_is_from_the_models_write_to_its_first_arrival() -> None:
    done = {"began": 10.0, "ended": 12.0, "tokens": [[0, 10.5], [1, 11.0], [0, 11.5]]}
    times = token_times(done, [10.4, 10.8])
    assert times["lags_ms"] == [100.0, 200.0]
    assert times["first_ms"] == 500.0


def test_a_target_is_met_at_its_limit_or_missed_and_unknown_without_a_value() -> None:
    assert Target("x", 0.8, 0.8, "×").verdict == "met"
    assert Target("x", 0.81, 0.8, "×").verdict == "**missed**"
    assert Target("x", 0.3, 0.3, "s", below=True).verdict == "**missed**"
    assert Target("x", 1.8, 1.8, "×", at_least=True).verdict == "met"
    assert Target("x", None, 1, "").verdict == "not measured"


def test_every_target_has_its_row_before_anything_was_measured() -> None:
    empty = Results("2000-01-01 00:00", {}, {})
    assert {target.verdict for target in targets(empty)} == {"not measured"}
    assert comparison([]) == ["|  |", "| --- |"]


def test_a_turns_time_is_told_without_gaps() -> None:
    recorded = min(HISTORIES.glob("*.json"))
    history = WorkflowHistory.from_json("turn-x", json.loads(recorded.read_text()))
    pieces = segments(history.events)
    assert pieces
    covered = pieces[0].begin
    for piece in pieces:
        assert piece.begin <= covered + 0.005
        assert piece.end >= piece.begin
        covered = max(covered, piece.end)
