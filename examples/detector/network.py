"""The detector: a YOLOv10-style network with a one-to-many and a one-to-one head, for CPUs: plain 3x3 convolutions, few channels."""

import copy
import math

import torch
from torch import nn
from torch.nn import functional as F

STRIDES = (8, 16, 32)
BINS = 16


class Conv(nn.Module):
    """Convolution, batch normalisation, SiLU."""

    def __init__(self, inputs, outputs, kernel=3, stride=1):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
        self.norm = nn.BatchNorm2d(outputs, eps=1e-3, momentum=0.03)

    def forward(self, x):
        return F.silu(self.norm(self.conv(x)))


class Stage(nn.Module):
    """Cross-stage partial block: half of the channels pass `depth` residual pairs of convolutions, and every half is kept."""

    def __init__(self, inputs, outputs, depth, residual=True):
        super().__init__()
        self.half = half = outputs // 2
        self.residual = residual
        self.split = Conv(inputs, 2 * half, 1)
        self.pairs = nn.ModuleList(nn.Sequential(Conv(half, half), Conv(half, half)) for _ in range(depth))
        self.join = Conv((2 + depth) * half, outputs, 1)

    def forward(self, x):
        parts = list(self.split(x).split(self.half, 1))
        for pair in self.pairs:
            made = pair(parts[-1])
            parts.append(parts[-1] + made if self.residual else made)
        return self.join(torch.cat(parts, 1))


class Pooled(nn.Module):
    """Three poolings of 5x5 in a row beside their input: a view of the whole scene at stride 32."""

    def __init__(self, channels):
        super().__init__()
        self.before = Conv(channels, channels // 2, 1)
        self.after = Conv(2 * channels, channels, 1)

    def forward(self, x):
        parts = [self.before(x)]
        for _ in range(3):
            parts.append(F.max_pool2d(parts[-1], 5, 1, 2))
        return self.after(torch.cat(parts, 1))


class Head(nn.Module):
    """For each level distances to the four sides over BINS bins, and a logit for each class: [B, 4*BINS + classes, anchors]."""

    def __init__(self, channels, classes, width):
        super().__init__()
        self.boxes = nn.ModuleList(
            nn.Sequential(Conv(c, width), nn.Conv2d(width, 4 * BINS, 1)) for c in channels
        )
        self.classes = nn.ModuleList(
            nn.Sequential(Conv(c, width), nn.Conv2d(width, classes, 1)) for c in channels
        )
        for box, score in zip(self.boxes, self.classes):
            nn.init.ones_(box[-1].bias)
            # Every class begins as improbable as an object is.
            nn.init.constant_(score[-1].bias, math.log(0.01))

    def forward(self, levels):
        outputs = [
            torch.cat((box(x), score(x)), 1).flatten(2)
            for box, score, x in zip(self.boxes, self.classes, levels)
        ]
        return torch.cat(outputs, 2)


class Detector(nn.Module):
    """Input [B, 3, H, W] from 0 to 1, H and W multiples of 32; outputs of both heads, one-to-one on features it does not train."""

    def __init__(self, classes, channels=(16, 32, 64, 96, 128), width=48):
        super().__init__()
        a, b, c, d, e = channels
        self.stem = nn.Sequential(Conv(3, a, 3, 2), Conv(a, b, 3, 2), Stage(b, b, 1))
        self.to8 = nn.Sequential(Conv(b, c, 3, 2), Stage(c, c, 2))
        self.to16 = nn.Sequential(Conv(c, d, 3, 2), Stage(d, d, 2))
        self.to32 = nn.Sequential(Conv(d, e, 3, 2), Stage(e, e, 1), Pooled(e))
        self.up16 = Stage(d + e, d, 1, residual=False)
        self.up8 = Stage(c + d, c, 1, residual=False)
        self.down16 = Conv(c, c, 3, 2)
        self.out16 = Stage(c + d, d, 1, residual=False)
        self.down32 = Conv(d, d, 3, 2)
        self.out32 = Stage(d + e, e, 1, residual=False)
        self.many = Head((c, d, e), classes, width)
        self.one = copy.deepcopy(self.many)

    def features(self, x):
        p8 = self.to8(self.stem(x))
        p16 = self.to16(p8)
        p32 = self.to32(p16)
        n16 = self.up16(torch.cat((F.interpolate(p32, scale_factor=2.0, mode="nearest"), p16), 1))
        n8 = self.up8(torch.cat((F.interpolate(n16, scale_factor=2.0, mode="nearest"), p8), 1))
        o16 = self.out16(torch.cat((self.down16(n8), n16), 1))
        o32 = self.out32(torch.cat((self.down32(o16), p32), 1))
        return n8, o16, o32

    def forward(self, x):
        levels = self.features(x)
        return self.many(levels), self.one([level.detach() for level in levels])


def anchors(height, width):
    """Centres [N, 2] of the anchors in pixels and their strides [N, 1]."""
    centres, strides = [], []
    for stride in STRIDES:
        rows, columns = height // stride, width // stride
        y, x = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
        centres.append((torch.stack((x, y), -1).reshape(-1, 2) + 0.5) * stride)
        strides.append(torch.full((rows * columns, 1), float(stride)))
    return torch.cat(centres), torch.cat(strides)


def distances(logits):
    """Expected distances [B, N, 4] in strides from logits [B, N, 4*BINS]."""
    share = logits.unflatten(-1, (4, BINS)).softmax(-1)
    return share @ torch.arange(BINS, dtype=share.dtype, device=share.device)


def corners(distance, centres, strides):
    """Left, top, right, bottom in pixels."""
    scaled = distance * strides
    return torch.cat((centres - scaled[..., :2], centres + scaled[..., 2:]), -1)
