"""The verdict of an audit: whether the invariance is genuine, why, and what to do if it is not.

Invariance *holds* on a set if a view's logits stay near its input's (LI relative to the spread of the logits) and its
prediction is kept. It is *genuine* if, also, the saliency transforms with the input (paper D: SI >= 0.95) and it holds
on other data. All limits are relative to the noise floor, so that interpolation does not count.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from augury.config.audit import LIMITS, Limits
from augury.core.errors import InputError, choose
from augury.records.results import AUDIT_VERDICTS, Audit, Measure, Scores

GENUINE, ONLY_TRAINED, SENSITIVE, TRIVIAL = AUDIT_VERDICTS


@dataclass(frozen=True)
class Verdict:
    """A verdict, the figures behind it, and advice."""

    verdict: str  # one of `augury.records.results.AUDIT_VERDICTS`
    why: str
    advice: str


def holds(scores: Scores, floor: Scores, limits: Limits = LIMITS) -> bool:
    """Return whether the outputs for views stay near those for their inputs."""
    near = scores.LI_relative is None or scores.LI_relative <= limits.far + (floor.LI_relative or 0.0)
    if scores.agreement is None or floor.agreement is None:
        return near
    return near and scores.agreement.value >= limits.keep * floor.agreement.value


def decide(
    group: str, scores: Scores, floor: Scores, drift: Mapping[str, Scores], constant: bool, limits: Limits = LIMITS
) -> Verdict:
    if constant:
        return Verdict(TRIVIAL, "The model gives the same output for every input.", ADVICE[TRIVIAL])
    broken = [name for name, other in drift.items() if not holds(other, floor, limits)]
    if scores.SI is None or floor.SI is None:
        alike = holds(scores, floor, replace(limits, far=limits.near))
    else:
        alike = scores.SI.value + 2 * (scores.SI.stderr or 0.0) >= limits.SI * floor.SI.value
    if not holds(scores, floor, limits):
        verdict = SENSITIVE
    elif broken or not alike:
        verdict = ONLY_TRAINED
    else:
        verdict = GENUINE
    return Verdict(verdict, _why(scores, floor, drift, broken, limits), ADVICE[verdict].format(group=group))


def _why(scores: Scores, floor: Scores, drift: Mapping[str, Scores], broken: list[str], limits: Limits) -> str:
    parts = [_figures("On the audited inputs", scores)]
    if scores.SI is not None and floor.SI is not None:
        alone = f" where interpolation alone leaves {floor.SI.value:.2f}" if floor.SI.value < 0.995 else ""
        limit = limits.SI * floor.SI.value
        error = "" if scores.SI.stderr is None else f" +- {scores.SI.stderr:.2f}"
        within = " (within two standard errors)" if error else ""
        parts.append(
            f"Saliency similarity is {scores.SI.value:.2f}{error}{alone}; genuine is {limit:.2f} or more{within}."
        )
    if not holds(scores, floor, limits):
        return " ".join(parts)
    if broken:
        worst = max(broken, key=lambda name: drift[name].LI_relative or 0.0)
        there = "there" if len(broken) == 1 else f"on {worst}"
        parts.append(_figures(f"It breaks on {', '.join(broken)}: {there}", drift[worst]))
    elif drift:
        parts.append(f"It holds on {', '.join(drift)} too.")
    return " ".join(parts)


def _figures(where: str, scores: Scores) -> str:
    kept = (
        "" if scores.agreement is None else f"{100 * scores.agreement.value:.0f} % of views keep the prediction, and "
    )
    if scores.LI_relative is None:
        return f"{where}, {kept}logits do not differ between inputs."
    return f"{where}, {kept}logits move by {100 * scores.LI_relative:.1f} % of the squared distance to another input."


ADVICE = {
    GENUINE: "Nothing to do. Audit again when the data or the model change.",
    ONLY_TRAINED: (
        "Predictions agree here, but may not for inputs unlike these. For a finite group such as C4, tie "
        "the first layer (augury.methods.fixed_transform), which is exact on any input; otherwise regularise "
        "(augury.methods.regularised), which costs some accuracy, or average the predictions over {group} "
        "(augury.OrbitAverage)."
    ),
    SENSITIVE: (
        "The model distinguishes inputs from their views under {group}. If the label should not change, train it to be "
        "invariant: `augury learn` finds how far the labels allow it. If it should, there is nothing to repair."
    ),
    TRIVIAL: "Check that the model was trained, and that its weights were loaded.",
}

FIGURES = ("LI", "LI_relative", "DI", "SI", "agreement", "sigma_max_jacobian", "sigma_max_relative")
"""Figures of an audit that a limit can be set on."""


def beyond_limits(audit: Audit, above: Mapping[str, float], below: Mapping[str, float]) -> list[str]:
    """Return a message for every figure that is above or below its limit."""
    messages = []
    for limits, word, sign in ((above, "above", 1), (below, "below", -1)):
        for name, limit in limits.items():
            figure = getattr(audit, choose("figure", name, FIGURES))
            if figure is None:
                raise InputError(f"{name} has no limit to keep: this model and these data have no such figure.")
            value = figure.value if isinstance(figure, Measure) else float(figure)
            if sign * (value - limit) > 0:
                messages.append(f"{name} is {value:.4g}, {word} the limit of {limit:g}.")
    return messages
