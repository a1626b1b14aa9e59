/** Front end of a recogniser: how sound becomes features. Defaults are those of NeMo's Parakeet models. */
export interface FrontEnd {
  /** Samples a second that the features are for. */
  readonly rate: number;
  readonly mels: number;
  /** Of the Fourier transform: a power of two. */
  readonly fftSize: number;
  /** Samples of the window, centred in the transform, and from one frame to the next. */
  readonly window: number;
  readonly hop: number;
  /** y[t] = x[t] - preemphasis * x[t-1]; 0: none. */
  readonly preemphasis: number;
  /** Added before the logarithm. */
  readonly guard: number;
  /** `per-feature`: mean 0 and deviation 1 of each mel over the valid frames; then it does not stream. */
  readonly normalize: 'per-feature' | 'none';
}

/** FastConformer and Parakeet (NeMo's `AudioToMelSpectrogramPreprocessor` with the models' own settings). */
export const nemoFrontEnd: FrontEnd = {
  rate: 16_000,
  mels: 80,
  fftSize: 512,
  window: 400,
  hop: 160,
  preemphasis: 0.97,
  guard: 2 ** -24,
  normalize: 'per-feature',
};

export interface Features {
  /** By mel, then frame: `[mels, frames]`. */
  readonly values: Float32Array;
  readonly mels: number;
  readonly frames: number;
  /** Frames that count; those after it are 0. */
  readonly valid: number;
}

/**
 * Log-mel features as NeMo computes them (`FilterbankFeatures`): pre-emphasis, zero-padded frames around multiples of the hop, symmetric Hann window, power
 * spectrum, Slaney mel filters with their area normalised, natural logarithm. 1 + floor(samples / hop) frames, of which floor(samples / hop) are valid.
 */
export function logMel(samples: Float32Array, options: FrontEnd): Features {
  const { mels, fftSize, window, hop, guard, normalize } = options;
  const emphasised = emphasise(samples, options.preemphasis);
  const filters = melFilters(options);
  const hann = Float64Array.from(
    { length: window },
    (_, at) => 0.5 - 0.5 * Math.cos((2 * Math.PI * at) / (window - 1)),
  );
  const transform = new FourierTransform(fftSize);
  const frames = 1 + Math.floor(samples.length / hop);
  const valid = Math.floor(samples.length / hop);
  const values = new Float64Array(mels * frames);
  const [real, imaginary] = [new Float64Array(fftSize), new Float64Array(fftSize)];
  const power = new Float64Array(fftSize / 2 + 1);
  const offset = Math.floor((fftSize - window) / 2);
  for (let frame = 0; frame < frames; frame++) {
    real.fill(0);
    imaginary.fill(0);
    const first = frame * hop - fftSize / 2 + offset;
    for (let at = 0; at < window; at++) real[offset + at] = (emphasised[first + at] ?? 0) * hann[at]!;
    transform.run(real, imaginary);
    for (let bin = 0; bin < power.length; bin++) power[bin] = real[bin]! ** 2 + imaginary[bin]! ** 2;
    filters.forEach(({ first: start, weights }, mel) => {
      let energy = 0;
      for (let at = 0; at < weights.length; at++) energy += weights[at]! * power[start + at]!;
      values[mel * frames + frame] = Math.log(energy + guard);
    });
  }
  if (normalize === 'per-feature') normalizeRows(values, frames, valid);
  for (let mel = 0; mel < mels; mel++) values.fill(0, mel * frames + valid, (mel + 1) * frames);
  return { values: Float32Array.from(values), mels, frames, valid };
}

/** The first `count` frames of each mel: `[mels, count]`. */
export function firstFrames({ values, mels, frames }: Features, count: number): Float32Array {
  if (count === frames) return values;
  const kept = new Float32Array(mels * count);
  for (let mel = 0; mel < mels; mel++)
    kept.set(values.subarray(mel * frames, mel * frames + count), mel * count);
  return kept;
}

function emphasise(samples: Float32Array, factor: number): Float64Array {
  const out = Float64Array.from(samples);
  for (let at = out.length - 1; at > 0; at--) out[at]! -= factor * samples[at - 1]!;
  return out;
}

/** Deviation over n - 1, 1e-5 added to it; a single frame becomes 0. */
function normalizeRows(values: Float64Array, frames: number, valid: number): void {
  for (let row = 0; row < values.length; row += frames) {
    const counted = values.subarray(row, row + valid);
    const mean = counted.reduce((sum, value) => sum + value, 0) / valid;
    const squares = counted.reduce((sum, value) => sum + (value - mean) ** 2, 0);
    const deviation = valid > 1 ? Math.sqrt(squares / (valid - 1)) : 0;
    for (let at = 0; at < valid; at++) counted[at] = (counted[at]! - mean) / (deviation + 1e-5);
  }
}

interface Filter {
  /** The first bin with a weight. */
  readonly first: number;
  readonly weights: Float64Array;
}

/** Slaney's mel scale: linear to 1 kHz, 27 steps for each factor of 6.4 above. */
const toMel = (hertz: number): number =>
  hertz < 1000 ? (3 * hertz) / 200 : 15 + (27 * Math.log(hertz / 1000)) / Math.log(6.4);
const fromMel = (mel: number): number => (mel < 15 ? (200 * mel) / 3 : 1000 * 6.4 ** ((mel - 15) / 27));

/** Triangles from 0 to half the rate, as `librosa.filters.mel(norm='slaney')`. */
function melFilters({ rate, mels, fftSize }: FrontEnd): readonly Filter[] {
  const top = toMel(rate / 2);
  const edges = Array.from({ length: mels + 2 }, (_, at) => fromMel((top * at) / (mels + 1)));
  return Array.from({ length: mels }, (_, mel) => {
    const [low, center, high] = [edges[mel]!, edges[mel + 1]!, edges[mel + 2]!];
    const weights = Float64Array.from({ length: fftSize / 2 + 1 }, (_, bin) => {
      const hertz = (bin * rate) / fftSize;
      const rising = (hertz - low) / (center - low);
      const falling = (high - hertz) / (high - center);
      return (Math.max(0, Math.min(rising, falling)) * 2) / (high - low);
    });
    const first = Math.max(
      0,
      weights.findIndex((weight) => weight > 0),
    );
    return { first, weights: weights.slice(first, weights.findLastIndex((weight) => weight > 0) + 1) };
  });
}

/** In-place transform of a power of two, Cooley and Tukey's with tables. */
class FourierTransform {
  readonly #cosines: Float64Array;
  readonly #sines: Float64Array;
  readonly #reversed: Uint32Array;

  constructor(size: number) {
    const bits = Math.log2(size);
    const angle = (at: number) => (-2 * Math.PI * at) / size;
    this.#cosines = Float64Array.from({ length: size / 2 }, (_, at) => Math.cos(angle(at)));
    this.#sines = Float64Array.from({ length: size / 2 }, (_, at) => Math.sin(angle(at)));
    this.#reversed = new Uint32Array(size);
    for (let at = 1; at < size; at++)
      this.#reversed[at] = (this.#reversed[at >> 1]! >> 1) | ((at & 1) << (bits - 1));
  }

  run(real: Float64Array, imaginary: Float64Array): void {
    const size = this.#reversed.length;
    for (let at = 0; at < size; at++) {
      const other = this.#reversed[at]!;
      if (other <= at) continue;
      [real[at], real[other]] = [real[other]!, real[at]!];
      [imaginary[at], imaginary[other]] = [imaginary[other]!, imaginary[at]!];
    }
    for (let half = 1; half < size; half *= 2) {
      const stride = size / (2 * half);
      for (let start = 0; start < size; start += 2 * half)
        for (let at = 0; at < half; at++) {
          const [low, high] = [start + at, start + at + half];
          const [cosine, sine] = [this.#cosines[at * stride]!, this.#sines[at * stride]!];
          const x = real[high]! * cosine - imaginary[high]! * sine;
          const y = real[high]! * sine + imaginary[high]! * cosine;
          real[high] = real[low]! - x;
          imaginary[high] = imaginary[low]! - y;
          real[low] = real[low]! + x;
          imaginary[low] = imaginary[low]! + y;
        }
    }
  }
}
