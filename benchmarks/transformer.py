"""A small vision transformer from scratch on digits: what its rotation, accuracy and evidence are.

python benchmarks/transformer.py                                   rotated digits, through the bound of the NTK
python benchmarks/transformer.py --freeze cls,pos                  through Laplace's evidence
python benchmarks/transformer.py --upright --steps 100 --at-once   a network that knows little: nothing may be decided
... --upright --steps 100 --at-once --unguarded --seed 1           the same training, without the guard against guessing
"""

import argparse
import math
from contextlib import nullcontext
from unittest import mock

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import augury


class Block(nn.Module):
    """Attention and an MLP, each on normalised inputs and added to them."""

    def __init__(self, d: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.mlp = nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(self.norm_1(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm_2(x))


class ViT(nn.Module):
    """Sixteen patches, a class token, positions, two blocks."""

    def __init__(self, d: int = 32, heads: int = 4, depth: int = 2, patch: int = 7) -> None:
        super().__init__()
        self.embed = nn.Conv2d(1, d, patch, patch)
        self.cls = nn.Parameter(torch.zeros(1, 1, d))
        self.pos = nn.Parameter(0.02 * torch.randn(1, (28 // patch) ** 2 + 1, d))
        self.blocks = nn.Sequential(*[Block(d, heads) for _ in range(depth)])
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x).flatten(2).mT
        x = torch.cat([self.cls.expand(len(x), -1, -1), x], 1) + self.pos
        return self.head(self.norm(self.blocks(x))[:, 0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--freeze", default="", help="parameters to freeze, for Laplace's evidence")
    parser.add_argument("--upright", action="store_true", help="digits as they are")
    parser.add_argument("--at-once", action="store_true", help="widths climb before the network knows anything")
    parser.add_argument("--unguarded", action="store_true", help="give verdicts however little the network knows")
    parser.add_argument("--steps", type=int, default=2400)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    torch.manual_seed(given.seed)
    data = augury.load("mnist5k", subset=1000, variant=None if given.upright else "rotated")
    own = {"freeze": given.freeze, "evidence": "laplace" if given.freeze else "ntk"}
    own |= {"steps": given.steps, "seed": given.seed}
    own |= {"evidence_below": 9.0} if given.at_once else {}
    never = mock.patch("augury.methods.widths.guess", lambda y: -math.inf) if given.unguarded else nullcontext()
    with never:
        found = augury.learn(data, ViT(), generators=("rotation",), **own).invariance
    print(found.widths["rotation"], found.test_accuracy, found.log_evidence, *found.notes, sep="\n")


if __name__ == "__main__":
    main()
