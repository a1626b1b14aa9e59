"""The recogniser: a streaming conformer encoder with caches, an LSTM predictor and a joint network of tokens and durations."""

from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

WORDS = (Path(__file__).parent / "labels.txt").read_text().split()
BLANK = len(WORDS)
DURATIONS = 5

MELS, WIDTH, HEADS, LAYERS, KERNEL = 80, 96, 4, 4, 9
# In encoder steps of 80 ms: attention sees its own chunk and so many before it.
CHUNK, CACHE = 4, 32
PREDICTOR, JOINT = 128, 128
# Frames in front of a chunk that belong to the one before, and the steps that come of them.
PRE_ENCODE, DROP_EXTRA = 9, 2
CHUNK_FRAMES = 8 * CHUNK


class Subsampling(nn.Module):
    """[batch, 80, frames] to [batch, ceil(frames / 8), width]; step i sees frames 8 i - 14 to 8 i."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(MELS, 1))
        self.register_buffer("scale", torch.ones(MELS, 1))
        self.convolutions = nn.ModuleList(nn.Conv2d(a, b, 3, 2) for a, b in [(1, 16), (16, 32), (32, 32)])
        self.out = nn.Linear(32 * MELS // 8, WIDTH)

    def forward(self, features):
        x = ((features - self.mean) * self.scale)[:, None]
        for convolution in self.convolutions:
            x = F.silu(convolution(F.pad(x, (2, 0, 1, 1))))
        return self.out(x.permute(0, 3, 1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, dropout):
        super().__init__()
        feed_forward = lambda: nn.Sequential(
            nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.SiLU(), nn.Dropout(dropout), nn.Linear(4 * WIDTH, WIDTH)
        )
        self.before, self.after = feed_forward(), feed_forward()
        self.attention_norm, self.convolution_norm, self.depthwise_norm, self.norm = (nn.LayerNorm(WIDTH) for _ in range(4))
        self.query, self.key, self.value, self.merge = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.pointwise1 = nn.Linear(WIDTH, 2 * WIDTH)
        self.depthwise = nn.Conv1d(WIDTH, WIDTH, KERNEL, groups=WIDTH)
        self.pointwise2 = nn.Linear(WIDTH, WIDTH)
        # By the distance of a key: 3 steps ahead to 35 back.
        self.position = nn.Parameter(torch.zeros(CACHE + 2 * CHUNK - 1, HEADS))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, channel, time, distances, hidden):
        """`x` [batch, steps, width], `channel` [batch, CACHE, width], `time` [batch, width, KERNEL - 1]; x and the next two."""
        x = x + 0.5 * self.dropout(self.before(x))
        y = self.attention_norm(x)
        seen = torch.cat([channel, y], 1)
        heads = lambda z: z.unflatten(2, (HEADS, WIDTH // HEADS)).transpose(1, 2)
        scores = heads(self.query(y)) @ heads(self.key(seen)).transpose(2, 3) * (WIDTH // HEADS) ** -0.5
        scores = scores + self.position[distances].permute(2, 0, 1) + hidden
        mixed = scores.softmax(-1) @ heads(self.value(seen))
        x = x + self.dropout(self.merge(mixed.transpose(1, 2).flatten(2)))
        a, b = self.pointwise1(self.convolution_norm(x)).transpose(1, 2).chunk(2, 1)
        padded = torch.cat([time, a * b.sigmoid()], 2)
        y = F.silu(self.depthwise_norm(self.depthwise(padded).transpose(1, 2)))
        x = x + self.dropout(self.pointwise2(y))
        x = x + 0.5 * self.dropout(self.after(x))
        return self.norm(x), seen[:, -CACHE:], padded[:, :, 1 - KERNEL :]


class Encoder(nn.Module):
    """
    Features of any number of chunks with 9 earlier frames in front (zeros at the begin), and the states that the call before left; caches are filled
    from the right. An utterance in one call and in many gives the same.
    """

    def __init__(self, dropout=0.0):
        super().__init__()
        self.subsampling = Subsampling()
        self.blocks = nn.ModuleList(Block(dropout) for _ in range(LAYERS))

    def forward(self, audio_signal, length, cache_last_channel, cache_last_time, cache_last_channel_len):
        x = self.subsampling(audio_signal)[:, DROP_EXTRA:]
        lengths = (torch.div(length + 7, 8, rounding_mode="trunc") - DROP_EXTRA).clamp(min=0)
        query = torch.arange(x.shape[1], device=x.device)[:, None]
        key = torch.arange(x.shape[1] + CACHE, device=x.device)
        chunks = torch.div(key, CHUNK, rounding_mode="trunc") - torch.div(query, CHUNK, rounding_mode="trunc")
        near = (chunks >= 0) & (chunks <= CACHE // CHUNK)
        real = (key >= CACHE - cache_last_channel_len[:, None]) & (key < CACHE + lengths[:, None])
        hidden = torch.where(near & real[:, None], 0.0, -10_000.0).to(x.dtype)[:, None]
        distances = (query + (CACHE + CHUNK - 1) - key).clamp(0, CACHE + 2 * CHUNK - 2)
        channels, times = [], []
        for layer, block in enumerate(self.blocks):
            x, channel, time = block(x, cache_last_channel[:, layer], cache_last_time[:, layer], distances, hidden)
            channels.append(channel)
            times.append(time)
        cached = (cache_last_channel_len + lengths).clamp(max=CACHE)
        return x.transpose(1, 2), lengths, torch.stack(channels, 1), torch.stack(times, 1), cached

    def begin(self, batch, device=None):
        """The states before the first call."""
        return (
            torch.zeros(batch, LAYERS, CACHE, WIDTH, device=device),
            torch.zeros(batch, LAYERS, WIDTH, KERNEL - 1, device=device),
            torch.zeros(batch, dtype=torch.int64, device=device),
        )


class Predictor(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(BLANK + 1, PREDICTOR, padding_idx=BLANK)
        self.lstm = nn.LSTM(PREDICTOR, PREDICTOR, batch_first=True)

    def forward(self, y, h, c):
        g, (h_out, c_out) = self.lstm(self.embedding(y), (h, c))
        return g.transpose(1, 2), h_out, c_out

    def begin(self, batch, device=None):
        return torch.zeros(1, batch, PREDICTOR, device=device), torch.zeros(1, batch, PREDICTOR, device=device)


class Joint(nn.Module):
    """Raw logits [batch, T, U, tokens + blank + durations]."""

    def __init__(self):
        super().__init__()
        self.encoder, self.predictor = nn.Linear(WIDTH, JOINT), nn.Linear(PREDICTOR, JOINT)
        self.out = nn.Linear(JOINT, BLANK + 1 + DURATIONS)

    def forward(self, encoder_output, predictor_output):
        a = self.encoder(encoder_output.transpose(1, 2))[:, :, None]
        b = self.predictor(predictor_output.transpose(1, 2))[:, None]
        return self.out(F.relu(a + b))


class Recogniser(nn.Module):
    def __init__(self, dropout=0.0):
        super().__init__()
        self.encoder, self.predictor, self.joint = Encoder(dropout), Predictor(), Joint()
        # Only for training: a second loss on the encoder alone.
        self.ctc = nn.Linear(WIDTH, BLANK + 1)

    def encode(self, features, frames):
        """Whole utterances: [batch, 80, frames] and their counts."""
        states = self.encoder.begin(len(frames), features.device)
        output, lengths, *_ = self.encoder(F.pad(features, (PRE_ENCODE, 0)), frames + PRE_ENCODE, *states)
        return output, lengths

    def predict(self, targets):
        """[batch, 128, U + 1]: what the predictor returns before each target and after the last; the blank begins."""
        begun = F.pad(targets, (1, 0), value=BLANK)
        return self.predictor(begun, *self.predictor.begin(len(targets), targets.device))[0]

    @torch.no_grad()
    def decode(self, output, length, most=10):
        """Greedy tokens of one utterance, [1, width, steps], as NeMo decodes and `trtforge eval recogniser` does."""
        tokens, t, decided = [], 0, 0
        g, *state = self.predictor(torch.tensor([[BLANK]], device=output.device), *self.predictor.begin(1, output.device))
        while t < length:
            logits = self.joint(output[:, :, t : t + 1], g)[0, 0, 0]
            token, advance = int(logits[: BLANK + 1].argmax()), int(logits[BLANK + 1 :].argmax())
            if token != BLANK:
                tokens.append(token)
                g, *state = self.predictor(torch.tensor([[token]], device=output.device), *state)
            decided += 1
            if decided >= most or (advance == 0 and token == BLANK):
                advance += 1
            if advance > 0:
                t, decided = t + advance, 0
        return tokens
