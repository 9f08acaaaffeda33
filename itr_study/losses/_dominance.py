"""How many items stand before an item in two orders at once, counted without looking at pairs.

Items are columns 0 ... T - 1 in one order and have a place 0 ... T - 1 in another. Places are cut
into blocks of about sqrt(T). Of the items before column x and place y, those in whole blocks are
read off a table (block, x), the rest are compared within the block of y: some 2 sqrt(T) steps an
item and query.
"""

import math

import torch
from torch import Tensor

AT_ONCE = 2**20  # numbers held at one time


def smaller_in_both(place: Tensor, bounds: Tensor) -> Tensor:
    """(q, I, T) for every item: the number of items in columns < bound and with a smaller place.

    Args:    place: (I, T) int64, a permutation in each row; bounds: (q, I, T) int64 in 0 ... T.
    """
    size = block_size(place.shape[1])
    rows = max(1, AT_ONCE // (place.shape[1] * max(size, place.shape[1] // size)))
    parts = [count_rows(p, b, size) for p, b in
             zip(place.split(rows), bounds.split(rows, dim=1), strict=True)]
    return torch.cat(parts, dim=1)


def block_size(items: int) -> int:
    """A power of two near the square root, at most 256."""
    return min(256, 2 ** round(math.log2(items) / 2))


def count_rows(place: Tensor, bounds: Tensor, size: int) -> Tensor:
    """smaller_in_both of a few rows."""
    rows, items = place.shape
    blocks = -(-items // size)
    block = place // size
    # before[., b, x]: items in columns < x with a place in a block < b
    before = torch.zeros(rows, blocks, items + 1, dtype=torch.int32, device=place.device)
    lower = block[:, None] < torch.arange(blocks, device=place.device)[:, None]
    torch.cumsum(lower, dim=2, dtype=torch.int32, out=before[:, :, 1:])
    return torch.stack([
        before.view(rows, -1).gather(1, block * (items + 1) + bound)
        + within_block(place, bound, size, blocks) for bound in bounds])


def within_block(place: Tensor, bound: Tensor, size: int, blocks: int) -> Tensor:
    """(I, T) int32: items of the same block with a smaller place, in columns < bound."""
    rows, items = place.shape
    padded = (rows, blocks * size)
    columns = torch.arange(items, device=place.device, dtype=torch.int32).expand(rows, items)
    column_at = torch.zeros(padded, dtype=torch.int32, device=place.device)
    column_at.scatter_(1, place, columns)
    bound_at = torch.zeros(padded, dtype=torch.int32, device=place.device)
    bound_at.scatter_(1, place, bound.int())
    shape = (rows, blocks, size)
    earlier = column_at.view(shape)[:, :, None, :] < bound_at.view(shape)[:, :, :, None]
    earlier &= torch.ones(size, size, dtype=torch.bool, device=place.device).tril(-1)
    counts = earlier.sum(dim=3, dtype=torch.uint8).view(padded)  # below 256
    return counts.gather(1, place)
