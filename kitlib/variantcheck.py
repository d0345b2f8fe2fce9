"""Layout rules in every configuration: which combinations of options and choices break one."""

from __future__ import annotations

import numpy as np

from kitlib.guard import evaluate
from kitlib.rules import StructRules
from kitlib.variantmatrix import ABSENT, Answers
from kitlib.variants import Setting, Variants


def rules_broken(variants: Variants, rules: StructRules) -> Answers:
    """1 where a rule is broken, 0 where every rule that applies holds, `ABSENT` where one could not be evaluated.

    One answer a combination, in the order of `Variants.settings`; a broken rule counts before an undecided one.
    """
    return np.array([_broken(variants, rules, setting) for setting in variants.settings()], dtype=np.int64)


def _broken(variants: Variants, rules: StructRules, setting: Setting) -> int:
    config = {name: "y" if on else "n" for name, on in setting.items() if isinstance(on, bool)}
    found = {outcome.status for outcome in evaluate(rules, variants.layout(setting), config)}
    if "fail" in found:
        return 1
    return ABSENT if "undecided" in found or "pass" not in found else 0
