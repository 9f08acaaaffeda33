"""Write losses and their gradients as graphs that JavaScript computes: static/graph.js.

torch.fx traces a loss on tensors without values ("meta"), on which every loss of this package works
because it reads no number of its tensors. So none is written twice. What a slider changes is an
input of the graph, if the loss keeps it as floats; if not, each value has a graph of its own.
Graphs that differ in literals alone share their nodes.
"""

import itertools
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, fx
from torch._decomp import core_aten_decompositions
from torch.func import functionalize
from torch.fx.experimental.proxy_tensor import make_fx

from itr_study.checks import gathered
from itr_study.explorers.push_pull import SLIDERS, name_loss
from itr_study.losses import LOSSES
from itr_study.losses.base import RankingLoss

MOST_VALUES = 9  # of a slider each of whose values needs a graph
KINDS = {torch.float32: "f", torch.float64: "d", torch.bool: "b"}  # all others are whole: "i"
SAME = ("detach_copy", "detach", "alias", "clone", "lift_fresh_copy")  # a copy changes no value
UNUSED = ("dtype", "layout", "device", "pin_memory", "memory_format", "non_blocking")
COMPARE = ("le", "lt", "ge", "gt", "eq", "ne", "bucketize", "searchsorted")
READS = re.compile(r"_local_scalar_dense|item\(\)|meta tensor")
END = 2**53  # of a slice without an end


class UntraceableError(Exception):
    """Raised with the reason why a loss has no graph."""


def trace(loss: RankingLoss, inputs: Mapping[str, Any], items: int) -> fx.Graph:
    """Trace value and gradient of a list of items; inputs: attributes, floats or lists of them."""
    places = {name: torch.empty(len(value) if isinstance(value, list) else (), dtype=torch.float64,
                                device="meta") for name, value in inputs.items()}

    def compute(scores: Tensor, relevance: Tensor, given: dict[str, Tensor]) -> list[Tensor]:
        kept = {name: vars(loss)[name] for name in given}
        vars(loss).update(given)
        scores = scores.detach().requires_grad_()
        try:
            with gathered() as checks:
                value = loss(scores, relevance)
                checks.waiting.clear()  # there are no numbers to check
        finally:
            vars(loss).update(kept)
        (gradient,) = torch.autograd.grad(value, scores)
        return [value.detach(), gradient]

    batch = [torch.empty(1, items, device="meta") for _ in range(2)]
    try:
        plain = make_fx(compute)(*batch, places)
        pure = make_fx(functionalize(plain, remove="mutations_and_views"),
                       decomposition_table=core_aten_decompositions())(*batch, places)
    except (RuntimeError, TypeError, NotImplementedError) as error:
        why = "it reads a number of its tensors (item, if)" if READS.search(str(error)) else \
            f"{type(error).__name__}: {str(error).splitlines()[0]}"
        raise UntraceableError(why) from error
    pure.graph.eliminate_dead_code()
    return pure.graph


def write_nodes(graph: fx.Graph) -> list[list[Any]]:
    """List [operation, kind, arguments ...] of every node; a node is named by "#" and its place."""
    places: dict[fx.Node, int] = {}
    nodes: list[list[Any]] = []

    def written(value: Any) -> Any:
        if isinstance(value, fx.Node):
            return f"#{places[value]}"
        if isinstance(value, list | tuple):
            return [written(one) for one in value]
        if isinstance(value, float) and not math.isfinite(value):
            return f"~{value}"  # JSON has none
        return min(value, END) if isinstance(value, int) else value

    for node in graph.nodes:
        if node.op == "output":
            nodes.append(["output", "f", *map(written, node.args[0])])
        elif node.op == "placeholder":
            places[node] = len(nodes)
            nodes.append(["input", kind_of(node)])
        elif node.op == "get_attr":
            raise UntraceableError(f"a constant tensor in its code: {node.target}")
        else:
            name = getattr(node.target, "__name__", str(node.target)).partition(".")[0]
            if name in SAME:
                places[node] = places[node.args[0]]
                continue
            places[node] = len(nodes)
            nodes.append([name.removesuffix("_copy") if name != "_to_copy" else "to",
                          kind_of(node), *map(written, arguments_of(node))])
    return nodes


def arguments_of(node: fx.Node) -> list[Any]:
    """List the arguments in the order of the operation's schema, without those of memory."""
    schema = getattr(node.target, "_schema", None)
    if schema is None:  # getitem
        return list(node.args)
    values = [node.args[at] if at < len(node.args) else node.kwargs.get(one.name, one.default_value)
              for at, one in enumerate(schema.arguments)]
    kept = [value for value, one in zip(values, schema.arguments, strict=True)
            if one.name not in UNUSED]
    while kept and kept[-1] is None:
        kept.pop()
    return kept


def kind_of(node: fx.Node) -> str:
    """Name the arithmetic of a node: that of its value, or of what it compares."""
    name = getattr(node.target, "__name__", "").partition(".")[0]
    if name in COMPARE:
        parts = [one.meta["val"] if isinstance(one, fx.Node) else one for one in node.args[:2]]
        return KINDS.get(torch.result_type(*parts), "i")
    value = node.meta["val"]
    return KINDS.get(getattr(value, "dtype", None) or
                     getattr(value[0] if isinstance(value, list | tuple) else value, "dtype", None),
                     "i")


def slider_values(least: float, most: float, step: float) -> list[float]:
    """List the values of a slider, whole numbers where all are."""
    values = [round(least + n * step, 6) for n in range(round((most - least) / step) + 1)]
    return values if isinstance(least, float) or isinstance(step, float) else list(map(int, values))


def sparse(values: Sequence[float], default: float) -> list[float]:
    """Keep every so many values, at most MOST_VALUES, of which one is the default."""
    step = math.ceil(len(values) / MOST_VALUES)
    start = values.index(default) % step if default in values else 0
    return list(values[start::step])


def describe(name: str, loss: Callable[..., RankingLoss], items: int,
             whole: bool = True) -> dict[str, Any]:
    """Write a loss: its sliders, its graphs, and which graph computes which values of sliders.

    Args:
        name: of the loss.
        loss: its class.
        items: in a list.
        whole: False writes the graph of the default values alone.

    Returns:
        "name"; "scale" of relevance; "sliders" [argument, label, least, most, step, default, values
        or None for all]; "direct", arguments that are inputs of the graph; "grid", the others;
        "graphs"; "variants", by places of values of the grid: the graph, arguments that differ in
        it as [node, place, value], and further inputs. Or "why" it has no graph.
    """
    told: dict[str, Any] = {"name": name_loss(name) if name in LOSSES else name}
    try:
        return told | write_variants(loss, SLIDERS.get(name, {}), items, whole)
    except UntraceableError as error:
        return told | {"why": str(error)}


def write_variants(loss: Callable[..., RankingLoss], sliders: Mapping[str, tuple], items: int,
                   whole: bool) -> dict[str, Any]:
    """Write all but the name of a loss, as `describe` says."""
    default = loss()
    values = {name: slider_values(*ends) for name, (_, *ends) in sliders.items()}
    changed = {name: changed_by(loss, name, values[name]) for name in sliders}
    loose = [name for name in sliders if can_be_inputs(default, changed[name], items)]
    direct = [name for name in loose if changed[name] == [name]]
    grid = {name: sparse(values[name], vars(default)[name]) if whole else [vars(default)[name]]
            for name in sliders if name not in direct}
    inputs = sorted({one for name in loose for one in changed[name]})
    traced: dict[str, tuple[int, list]] = {}  # by what the nodes depend on
    graphs: dict[str, tuple[int, list]] = {}  # by the nodes without their literals
    variants = {}
    for places in itertools.product(*(range(len(of)) for of in grid.values())):
        chosen = [of[place] for of, place in zip(grid.values(), places, strict=True)]
        made = loss(**dict(zip(grid, chosen, strict=True)))
        given = {name: vars(made)[name] for name in inputs}
        fixed = [value for name, value in zip(grid, chosen, strict=True) if name not in loose]
        key = json.dumps([fixed, [len(value) for value in given.values() if is_list(value)]])
        if key not in traced:
            nodes = write_nodes(trace(made, given, items))
            traced[key] = graphs.setdefault(without_numbers(nodes), (len(graphs), nodes))[0], nodes
        at, nodes = traced[key]
        first = list(graphs.values())[at][1]
        patch = [[n, place, value] for n, node in enumerate(nodes)
                 for place, value in enumerate(node) if value != first[n][place]]
        further = [value for name, value in given.items() if name not in direct]
        variants[",".join(map(str, places))] = [at, patch, further]
    return {"scale": default.relevance_scale, "inputs": inputs, "direct": direct,
            "grid": list(grid), "graphs": [nodes for _, nodes in graphs.values()],
            "variants": variants,
            "sliders": [[name, label, *ends, vars(default)[name], grid.get(name)]
                        for name, (label, *ends) in sliders.items()]}


def is_list(value: object) -> bool:
    """Return whether a value is a list of floats."""
    return isinstance(value, list) and all(isinstance(one, float) for one in value)


def changed_by(loss: Callable[..., RankingLoss], name: str, values: Sequence[float]) -> list[str]:
    """List the attributes of a loss that an argument changes."""
    least, most = (vars(loss(**{name: value})) for value in (values[0], values[-1]))
    return [key for key in least if not key.startswith("_") and least[key] != most[key]]


def can_be_inputs(loss: RankingLoss, names: Sequence[str], items: int) -> bool:
    """Return whether attributes are floats that the loss takes as tensors, too."""
    given = {name: vars(loss)[name] for name in names}
    if not all(isinstance(value, float) or is_list(value) for value in given.values()):
        return False
    try:
        trace(loss, given, items)
    except UntraceableError:
        return False
    return True


def without_numbers(nodes: Sequence[Sequence[Any]]) -> str:
    """Write nodes as text in which all numbers are alike."""
    return re.sub(r"(?<=[\[,\s])-?\d[\d.e+-]*(?=[\],])", "0", json.dumps(nodes))


def write_losses(losses: Mapping[str, Callable[..., RankingLoss]] = LOSSES, items: int = 10,
                 whole: bool = True) -> dict[str, Any]:
    """Write all losses by name; operations are numbered, for they take most of the room."""
    told = {name: describe(name, loss, items, whole) for name, loss in losses.items()}
    operations = sorted({node[0] for one in told.values() for graph in one.get("graphs", ())
                         for node in graph})
    for one in told.values():
        for graph in one.get("graphs", ()):
            for node in graph:
                node[0] = operations.index(node[0])
    return {"items": items, "operations": operations, "losses": told}
