"""Sound to features, with the numbers of src/formats/audio: its resampler and its log-mel front end (NeMo's, without normalization)."""

import math
import wave

import numpy as np
import torch

RATE, HOP, WINDOW, FFT, MELS = 16_000, 160, 400, 512, 80
CROSSINGS, BETA, ROLLOFF = 32, 10.06, 0.945


def read_wav(path):
    """Samples from -1 to 1 and their rate; 16 bits, one channel."""
    with wave.open(str(path)) as file:
        assert (file.getnchannels(), file.getsampwidth()) == (1, 2), f"{path} is not mono of 16 bits"
        data = np.frombuffer(file.readframes(file.getnframes()), dtype="<i2")
        return torch.from_numpy(data.astype(np.float32) / 32_768), file.getframerate()


class Resampler:
    """Windowed sinc (Kaiser, 32 zero crossings): `up` results for every `down` samples, as one strided convolution."""

    def __init__(self, rate):
        divisor = math.gcd(rate, RATE)
        self.up, self.down = RATE // divisor, rate // divisor
        cut = ROLLOFF * min(1, RATE / rate)
        self.reach = math.ceil(CROSSINGS / cut)
        weights = np.zeros((self.up, self.down + 2 * self.reach))
        for phase in range(self.up):
            center, rest = divmod(phase * self.down, self.up)
            taps = np.arange(2 * self.reach)
            distance = rest / self.up + self.reach - 1 - taps
            kaiser = np.i0(BETA * np.sqrt(np.maximum(0, 1 - (distance / self.reach) ** 2))) / np.i0(BETA)
            weights[phase, center + taps] = cut * np.sinc(cut * distance) * kaiser * (abs(distance) < self.reach)
        self.weights = torch.from_numpy(weights).float()[:, None]

    def __call__(self, samples):
        length = math.ceil(samples.shape[-1] * self.up / self.down)
        padded = torch.nn.functional.pad(samples, (self.reach - 1, self.down + 2 * self.reach))
        rows = torch.nn.functional.conv1d(padded[None, None], self.weights, stride=self.down)[0]
        return rows.T.reshape(-1)[:length]


def mel_filters():
    """Slaney's triangles over 0 to 8 kHz, [mels, bins]."""
    to_mel = lambda hertz: 3 * hertz / 200 if hertz < 1000 else 15 + 27 * math.log(hertz / 1000) / math.log(6.4)
    from_mel = lambda mel: 200 * mel / 3 if mel < 15 else 1000 * 6.4 ** ((mel - 15) / 27)
    edges = np.array([from_mel(to_mel(RATE / 2) * at / (MELS + 1)) for at in range(MELS + 2)])
    hertz = np.arange(FFT // 2 + 1) * RATE / FFT
    low, center, high = (edges[at : at + MELS, None] for at in range(3))
    triangles = np.minimum((hertz - low) / (center - low), (high - hertz) / (high - center))
    return torch.from_numpy(np.maximum(0, triangles) * 2 / (high - low)).float()


class LogMel(torch.nn.Module):
    """[batch, samples] and their counts to [batch, 80, 1 + samples // 160] and the counts of frames; a row's frames from count // 160 on are 0."""

    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hann_window(WINDOW, periodic=False))
        self.register_buffer("filters", mel_filters())

    def forward(self, samples, counts):
        emphasised = torch.cat([samples[:, :1], samples[:, 1:] - 0.97 * samples[:, :-1]], 1)
        emphasised = emphasised * (torch.arange(samples.shape[1], device=samples.device) < counts[:, None])
        spectrum = torch.stft(
            emphasised, FFT, HOP, WINDOW, self.window, center=True, pad_mode="constant", return_complex=True
        )
        power = spectrum.real**2 + spectrum.imag**2
        features = torch.log(self.filters @ power + 2**-24)
        valid = torch.div(counts, HOP, rounding_mode="floor")
        mask = torch.arange(features.shape[2], device=samples.device) < valid[:, None]
        return features * mask[:, None], valid + 1
