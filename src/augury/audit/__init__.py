"""Is a model's invariance genuine? Measures, noise floor, spectrum, drift and a verdict, for any model.

The room bears the name of its one public function, so it can be called: `augury.audit(model, data, "C4")` is
`augury.audit.run.audit(model, data, "C4")`, whichever of the two was imported first.
"""

import sys
from types import ModuleType
from typing import Any


class _Room(ModuleType):
    def __call__(self, model: Any, data: Any, transforms: Any = None, **settings: Any) -> Any:
        """Ask whether a model's invariance is genuine: see `augury.audit.run.audit`."""
        from augury.audit.run import audit

        return audit(model, data, transforms, **settings)


sys.modules[__name__].__class__ = _Room
