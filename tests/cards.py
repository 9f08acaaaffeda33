"""What torch.cuda says of cards, for machines that have none: nothing computes on them."""

from dataclasses import dataclass
from types import SimpleNamespace

import torch

BUILT = ("sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120")  # of torch 2.13 for CUDA 13.0
GIB = 1 << 30


@dataclass
class Card:
    """Sizes in GiB."""

    total: float = 24.0
    free: float = 23.0
    capability: tuple[int, int] = (8, 6)


def put_in(monkeypatch, *cards: Card, built: tuple[str, ...] = BUILT) -> list[str]:
    """As if there were these cards, in this order, and a torch built for some architectures; the
    list grows by one whenever unused memory is given back."""
    emptied: list[str] = []

    def facts(card: torch.device | int) -> SimpleNamespace:
        number = card if isinstance(card, int) else card.index or 0
        major, minor = cards[number].capability
        return SimpleNamespace(name=f"Card {number}", major=major, minor=minor, uuid=f"id-{number}",
                               total_memory=int(cards[number].total * GIB))

    for name, answer in {
            "is_available": lambda: bool(cards), "device_count": lambda: len(cards),
            "get_device_properties": facts, "get_device_name": lambda card: facts(card).name,
            "get_device_capability": lambda card: (facts(card).major, facts(card).minor),
            "get_arch_list": lambda: list(built),
            "mem_get_info": lambda card: (int(cards[card].free * GIB), facts(card).total_memory),
            "empty_cache": lambda: emptied.append("empty")}.items():
        monkeypatch.setattr(torch.cuda, name, answer)
    return emptied
