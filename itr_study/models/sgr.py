"""SGR: similarity vectors tell each other what they know, then that of the wholes is read.

Source: similarity graph reasoning of SGRAF (Diao et al., AAAI 2021), Eqs. 5 and 6.
"""

import torch
from torch import Tensor, nn

from itr_study.checks import check_count
from itr_study.data.batches import InputSpec
from itr_study.models.cross_attention import absent, spread
from itr_study.models.sgraf import CrossAttention

MOST_STEPS = 16


class Reasoning(nn.Module):
    """One step of the graph: every node becomes what it sees of all nodes, mapped.

        e_pq = softmax over q of (W_in s_p)·(W_out s_q),  s_p <- ReLU(sum over q of e_pq W_r s_q)

    Shape:   nodes (N, P, S), bias (N, P, 1), see `absent`, asking (N, Q, S), the nodes that are to
             be renewed -> (N, Q, S).
    Source:  SGRAF Eqs. 5 and 6.
    """

    def __init__(self, size: int):
        super().__init__()
        self.inward = nn.Linear(size, size, bias=False)
        self.outward = nn.Linear(size, size, bias=False)
        self.relation = nn.Linear(size, size, bias=False)

    def forward(self, nodes: Tensor, bias: Tensor, asking: Tensor) -> Tensor:
        edge = self.inward.weight.T @ self.outward.weight  # both maps at once, of one side alone
        asked = (asking @ edge).transpose(1, 2)
        weights = torch.baddbmm(bias, nodes, asked).softmax(dim=1)  # (N, P, Q): faster than Q, P
        return self.relation(weights.transpose(1, 2) @ nodes).relu()  # W_r last: it is linear


class SGR(CrossAttention):
    """Words look at regions; what each pair of them is alike in goes through a graph, and is read
    at the node of the wholes.

    At first the graph hardly tells nodes apart: similarity vectors have length 1, so that logits of
    Eq. 5 spread by about 1 / sqrt(S), its weights are almost equal, and a step makes every node
    nearly the mean of all; further steps are then layers with a ReLU on one mean. On 800 images of
    `scenes`, S = 32, the nodes of a pair lay 0.06 apart after one step, 1e-5 after two and 1e-16
    after three (the means of pairs vary by 0.3, 0.2 and 0.1), and after three epochs of training
    still 5e-5 and 5e-15. That costs time at a low rate: RSUM on 60 images of dev after 3 epochs of
    triplet_sum at 1e-3 was 212 with one step, 105 with three. At 4e-3 no number of steps was late:
    484, 461 and 458 at best of 5 epochs with one, two and three (one seed). The bases take one,
    which is the cheapest, too; the equations are as printed.

    Args:    steps: N of the graph (3, the paper's), each with weights of its own; the others as
             `CrossAttention`.
    Shape:   scores (I, T) in (0, 1); `attend` gives the attention (P, W, R) of pairs.
    Source:  SGRAF Eqs. 5 and 6, N = 3; the score is sigmoid(u · s + c) of the last node.
    Differs: in the last step only the node that is read is made. What the paper leaves open:
             maps without biases, as they are printed, and see `CrossAttention`. The paper trains
             with the hinge of the hardest negatives at a margin of 0.2.
    """

    name, display_name, source, version = "sgr", "SGR", "SGRAF: Diao et al., AAAI 2021", 2

    def __init__(self, inputs: InputSpec, size: int = 1024, similarity: int = 256,
                 steps: int = 3, text: str = "bigru", word_size: int = 300, scale: float = 9.0,
                 dropout: float = 0.0, image_dropout: float = 0.0, region_dropout: float = 0.0,
                 word_dropout: float = 0.0):
        super().__init__(inputs, size, similarity, text, word_size, scale, dropout, image_dropout,
                         region_dropout, word_dropout)
        check_count("steps", steps, 1, MOST_STEPS)
        self.pair.steps = nn.ModuleList(Reasoning(similarity) for _ in range(steps))
        self.pair.score = nn.Linear(similarity, 1)
        spread(self.pair)

    def read(self, nodes: Tensor, exists: Tensor) -> Tensor:
        pairs = nodes.shape[:2]
        bias = absent(exists, nodes.dtype).repeat(len(nodes), 1).unsqueeze(2)  # (I T, P, 1)
        nodes = nodes.flatten(0, 1)
        *earlier, last = self.pair.steps
        for step in earlier:
            nodes = step(nodes, bias, nodes)
        whole = last(nodes, bias, nodes[:, :1]).squeeze(1)
        return self.pair.score(whole).view(pairs).sigmoid()
