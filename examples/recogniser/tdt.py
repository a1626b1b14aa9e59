"""The loss of a token-and-duration transducer (Xu et al. 2023), in plain PyTorch: diagonals t + u one after the other, a batch at a time."""

import torch

NEVER = -1e30


def tdt_loss(logits, targets, steps, lengths, durations=5, sigma=0.05):
    """
    `logits` [batch, T, U + 1, tokens + blank + durations], the blank after the tokens; durations are 0, 1, 2, …; `targets` [batch, U]; `steps` and
    `lengths` [batch]. The sum of negative logarithms of probability over the targets of the batch. `sigma` takes from every token's logarithm (that
    paper's under-normalization, which favours long durations).
    """
    batch, T, rows, width = logits.shape
    U = rows - 1
    tokens = logits[..., : width - durations].log_softmax(-1) - sigma
    times = logits[..., width - durations :].log_softmax(-1)
    blank = tokens[..., -1:] + times[..., 1:]
    picked = tokens[:, :, :U].gather(3, targets[:, None, :, None].expand(batch, T, U, 1))
    emit = torch.nn.functional.pad(picked, (0, 0, 0, 1), value=NEVER) + times
    # Place [s, u] of the skewed tables is cell (t = s - u, u).
    places = torch.arange(T + U, device=logits.device)[:, None] - torch.arange(rows, device=logits.device)
    inside = ((places >= 0) & (places < T))[None, :, :, None]
    moves = torch.cat([blank, emit], 3)[:, places.clamp(0, T - 1), torch.arange(rows, device=logits.device)]
    moves = moves.masked_fill(~inside, NEVER).unbind(1)

    nowhere = logits.new_full((batch, rows), NEVER)
    start = nowhere.clone()
    start[:, 0] = 0
    left = []
    for s in range(T + U):
        if s == 0:
            at = start
        else:
            stay = [left[s - d][..., d - 1] for d in range(1, durations) if s >= d]
            go = [left[s - d - 1][..., durations - 1 + d] for d in range(durations) if s > d]
            moved = torch.logsumexp(torch.stack(go), 0)
            at = torch.logsumexp(torch.stack([*stay, torch.cat([nowhere[:, :1], moved[:, :-1]], 1)]), 0)
        left.append(at[..., None] + moves[s])
    # The end: a blank of duration d at step T - d, after the last token.
    table = torch.stack(left, 1)
    d = torch.arange(1, durations, device=logits.device)
    before = steps[:, None] - d
    row = torch.arange(batch, device=logits.device)[:, None]
    ends = table[row, (before.clamp(min=0) + lengths[:, None]).clamp(max=T + U - 1), lengths[:, None], d - 1]
    return -torch.logsumexp(ends.masked_fill(before < 0, NEVER), 1)


def by_recursion(logits, targets, durations, sigma):
    """The same for one item without padding, cell by cell as the paper states it."""
    T, rows, width = logits.shape
    tokens = logits[..., : width - durations].log_softmax(-1) - sigma
    times = logits[..., width - durations :].log_softmax(-1)
    alpha = {(0, 0): torch.zeros(())}
    for t in range(T + 1):
        for u in range(rows):
            if (t, u) == (0, 0):
                continue
            terms = [
                alpha[t - d, u] + tokens[t - d, u, -1] + times[t - d, u, d]
                for d in range(1, durations)
                if t - d >= 0
            ]
            if t < T and u > 0:
                terms += [
                    alpha[t - d, u - 1] + tokens[t - d, u - 1, targets[u - 1]] + times[t - d, u - 1, d]
                    for d in range(durations)
                    if t - d >= 0
                ]
            alpha[t, u] = torch.logsumexp(torch.stack(terms), 0) if terms else torch.tensor(NEVER)
    return -alpha[T, rows - 1]


if __name__ == "__main__":
    torch.manual_seed(0)
    sizes = [(9, 3), (6, 1), (4, 4), (1, 0)]
    logits = torch.randn(4, 9, 5, 12, requires_grad=True)
    targets = torch.randint(0, 6, (4, 4))
    steps, lengths = (torch.tensor(column) for column in zip(*sizes))
    ours = tdt_loss(logits, targets, steps, lengths)
    theirs = torch.stack([by_recursion(logits[i, :t, : u + 1], targets[i], 5, 0.05) for i, (t, u) in enumerate(sizes)])
    gradients = [torch.autograd.grad(loss.sum(), logits, retain_graph=True)[0] for loss in (ours, theirs)]
    print(f"loss differs by {(ours - theirs).abs().max():.1e}, gradient by {(gradients[0] - gradients[1]).abs().max():.1e}")
    assert torch.allclose(ours, theirs, atol=1e-5) and torch.allclose(*gradients, atol=1e-5)
