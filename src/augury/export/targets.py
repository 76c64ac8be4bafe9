"""Where a run can be exported to. Free of torch, so that the command line can list it at once."""

from collections.abc import Callable
from dataclasses import dataclass

from augury.export.albumentations import albumentations_code
from augury.export.code import Code
from augury.export.kornia import kornia_code
from augury.export.policy import Policy
from augury.export.torchvision import torchvision_code


@dataclass(frozen=True)
class Target:
    """One row of the table."""

    what: str  # what is written
    file: str  # default name of the file, or the folder
    write: Callable[[Policy], Code] | None = None  # turns a policy into text; None for the model itself


TARGETS = {
    "torchvision": Target("the policy as torchvision.transforms.v2 code", "policy_torchvision.py", torchvision_code),
    "kornia": Target("the policy as kornia code", "policy_kornia.py", kornia_code),
    "albumentations": Target("the policy as albumentations code", "policy_albumentations.py", albumentations_code),
    "json": Target("the policy as JSON, for augury learn --policy", "policy.json", lambda policy: Code(policy.dumps())),
    "torch": Target("the model: a torch.export program, safetensors, a model card", "exported"),
}
"""Every target by its name."""
