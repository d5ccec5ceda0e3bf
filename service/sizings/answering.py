"""One question answered for one GPU: as laid out, on the GPUs at hand, or on as few as hold the run."""

from __future__ import annotations

from typing import NamedTuple

from service.catalog.resolve import ResolvedGpu, ResolvedModel
from service.engine.question import Plan, Question
from service.engine.recommend import Recommendation, best, recommend
from service.engine.search.ranking import Goal
from service.engine.size import Sizing
from service.engine.step_time import Times, of_plan
from service.requests.request import SizingRequest
from service.sizings import solving
from service.sizings.asking import Asked, ask
from service.sizings.inputs import Input, settle
from service.sizings.nearest import freed, nearest_layout


class Answered(NamedTuple):
    """A plan for one GPU, sized and timed, and what is recommended instead of it or as it.

    `recommendation` is None for a given layout that fits, and where no count of this GPU holds the run (`nowhere`).
    """

    request: SizingRequest
    gpu: ResolvedGpu
    inputs: dict[str, Input]
    question: Question
    plan: Plan
    sizing: Sizing
    recommendation: Recommendation | None
    nowhere: bool
    #: the request gave the layout
    laid_out: bool = False

    @property
    def goal(self) -> Goal:
        goal: Goal = self.inputs["goal"].value
        return goal

    @property
    def tokens(self) -> int | None:
        """Training tokens of the whole run, where they were said."""
        tokens: int | None = self.inputs["tokens"].value
        return tokens

    def free_question(self) -> Question:
        """The question without the layout that it came with."""
        return next(iter(freed(self.request, self.question)))

    def times(self) -> Times | None:
        return of_plan(self.plan)

    def rank(self) -> tuple[bool, float, float, int]:
        """What fits first, then by the goal, then fewer GPUs, less time, more headroom."""
        timed = self.times()
        seconds = float(timed.seconds_per_token[0]) if timed is not None else float("inf")
        price = self.gpu.gpu.price_usd_per_hour
        cost = seconds * self.plan.gpus * price if price else float("inf")
        by_goal = {"gpus": float(self.plan.gpus), "time": seconds, "cost": cost}[self.goal]
        second = seconds if self.goal == "gpus" else float(self.plan.gpus)
        return (not self.sizing.fits, by_goal, second, -self.sizing.headroom_bytes)


def answer_for(request: SizingRequest, model: ResolvedModel, gpu: ResolvedGpu) -> Answered:
    """Answer for one GPU; raises InvalidInput with everything that cannot be."""
    inputs = settle(request, model.architecture, gpu.gpu)
    asked = ask(request, inputs, model.architecture, gpu.gpu)
    if asked.plan is None:
        solving.refuse_impossible(asked.question)
    if request.solve is not None:
        asked, inputs = solving.solve(request.solve, asked, inputs)
    if asked.plan is not None:
        return _as_laid_out(request, asked, asked.plan, gpu, inputs)
    goal: Goal = inputs["goal"].value
    found = recommend(asked.question, goal) if asked.gpus is None else best(asked.question, asked.gpus)
    if found is not None:
        return Answered(request, gpu, inputs, asked.question, found.plan, found.plan.size(), found, False)
    made = solving.closest_or_refuse(asked.question, asked.gpus)
    instead = recommend(asked.question, goal) if asked.gpus is not None else None
    return Answered(request, gpu, inputs, asked.question, made, made.size(), instead, instead is None)


def _as_laid_out(
    request: SizingRequest, asked: Asked, made: Plan, gpu: ResolvedGpu, inputs: dict[str, Input]
) -> Answered:
    sizing = made.size()
    nearest = None if sizing.fits else nearest_layout(request, made)
    return Answered(
        request, gpu, inputs, asked.question, made, sizing, nearest, not sizing.fits and nearest is None, True
    )
