"""Task-aligned assignment (Feng et al. 2021) and the losses of boxes, distances and classes."""

import math

import torch
from torch.nn import functional as F

from network import BINS, corners, distances

# Customary weights of the YOLO family.
BOX_WEIGHT, CLASS_WEIGHT, DISTANCE_WEIGHT = 7.5, 0.5, 1.5
ALPHA, BETA = 0.5, 6.0


def complete_iou(a, b):
    """Intersection over union, and the same less the penalties for centres and aspect ratios (Zheng et al. 2020); boxes broadcast."""
    low, high = torch.maximum(a[..., :2], b[..., :2]), torch.minimum(a[..., 2:], b[..., 2:])
    inner = (high - low).clamp(min=0).prod(-1)
    size_a, size_b = a[..., 2:] - a[..., :2], b[..., 2:] - b[..., :2]
    iou = inner / (size_a.prod(-1) + size_b.prod(-1) - inner + 1e-7)
    hull = torch.maximum(a[..., 2:], b[..., 2:]) - torch.minimum(a[..., :2], b[..., :2])
    offset = (a[..., :2] + a[..., 2:] - b[..., :2] - b[..., 2:]) / 2
    far = offset.square().sum(-1) / (hull.square().sum(-1) + 1e-7)
    turn = torch.atan(size_b[..., 0] / (size_b[..., 1] + 1e-7)) - torch.atan(size_a[..., 0] / (size_a[..., 1] + 1e-7))
    aspect = 4 / math.pi**2 * turn.square()
    with torch.no_grad():
        weight = aspect / (1 - iou + aspect + 1e-7)
    return iou, iou - far - weight * aspect


@torch.no_grad()
def assign(scores, boxes, centres, truth, count):
    """
    The `count` anchors of each object whose class score and overlap agree best.
    scores [B,N,C] from 0 to 1, boxes [B,N,4], truth = (boxes [B,M,4], classes [B,M], real [B,M]).
    Returns the object of each anchor [B,N] (-1: none) and its soft class target [B,N].
    """
    boxes_true, classes, real = truth
    overlap = complete_iou(boxes_true[:, :, None], boxes[:, None])[0]  # [B,M,N]
    of_class = scores.transpose(1, 2).gather(1, classes[:, :, None].expand(-1, -1, scores.shape[1]))
    # A box that is narrower than the distance of two anchors reaches one all the same.
    middle = (boxes_true[..., :2] + boxes_true[..., 2:]) / 2
    half = ((boxes_true[..., 2:] - boxes_true[..., :2]) / 2).clamp(min=5)
    inside = ((centres - middle[:, :, None]).abs() < half[:, :, None]).all(-1) & real[:, :, None]
    aligned = (of_class**ALPHA * overlap**BETA + 1e-12) * inside
    least = aligned.topk(count, 2).values[..., -1:]
    chosen = inside & (aligned >= least) & (aligned > 0)
    # An anchor that several objects want goes to the one it overlaps most.
    best = torch.where(chosen, overlap, -1.0).max(1)
    owner = torch.where(best.values >= 0, best.indices, -1)
    mine = torch.zeros_like(chosen).scatter_(1, owner.clamp(min=0)[:, None], (owner >= 0)[:, None])
    aligned = aligned * mine
    target = aligned / (aligned.amax(2, keepdim=True) + 1e-12) * (overlap * mine).amax(2, keepdim=True)
    return owner, target.amax(1)


def head_loss(outputs, centres, strides, truth, ignored, count):
    """Loss of one head; `ignored` [B,N] are anchors in crowds. outputs [B, 4*BINS + C, N]."""
    outputs = outputs.float().transpose(1, 2)
    box_logits, class_logits = outputs[..., : 4 * BINS], outputs[..., 4 * BINS :]
    boxes = corners(distances(box_logits), centres, strides)
    owner, soft = assign(class_logits.detach().sigmoid(), boxes.detach(), centres, truth, count)
    boxes_true, classes, _ = truth
    found = owner >= 0
    total = soft.sum().clamp(min=1)
    wanted = torch.zeros_like(class_logits)
    wanted.scatter_(2, classes.gather(1, owner.clamp(min=0))[..., None], (soft * found)[..., None])
    kept = (found | ~ignored)[..., None]
    class_loss = (F.binary_cross_entropy_with_logits(class_logits, wanted, reduction="none") * kept).sum() / total
    if not found.any():
        return CLASS_WEIGHT * class_loss, torch.zeros(3)
    weight = soft[found] / total
    aim = boxes_true.gather(1, owner.clamp(min=0)[..., None].expand(-1, -1, 4))[found]
    box_loss = ((1 - complete_iou(boxes[found], aim)[1]) * weight).sum()
    at, stride = (value.expand(len(owner), -1, -1)[found] for value in (centres, strides))
    sides = (torch.cat((at - aim[:, :2], aim[:, 2:] - at), 1) / stride).clamp(0, BINS - 1.01)
    low = sides.long()
    share = sides - low
    logits = box_logits[found].unflatten(-1, (4, BINS)).flatten(0, 1)
    near, far = (F.cross_entropy(logits, bin.flatten(), reduction="none").view_as(sides) for bin in (low, low + 1))
    distance_loss = ((near * (1 - share) + far * share).mean(1) * weight).sum()
    parts = torch.stack((class_loss, box_loss, distance_loss))
    loss = CLASS_WEIGHT * class_loss + BOX_WEIGHT * box_loss + DISTANCE_WEIGHT * distance_loss
    return loss, parts.detach().cpu()
