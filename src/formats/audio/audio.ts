/** Sound of one channel, from -1 to 1. */
export interface Audio {
  /** Samples a second. */
  readonly rate: number;
  readonly samples: Float32Array;
}

/** The error of one file. */
export type RejectAudio = (why: string, remedy?: string, cause?: unknown) => Error;

export const LARGEST_AUDIO_FILE = 2 ** 29;
/** Of one channel: features take twice their memory. */
const MOST_SAMPLES = 2 ** 26;
/** Low rates are raised, so samples alone bound nothing. */
const MOST_SECONDS = 1800;
/** Below and above are damaged headers, which would decide how much is computed: resampling takes a table of up to the product of both rates. */
const [LOWEST_RATE, HIGHEST_RATE] = [1000, 384_000];

export const isSampleRate = (rate: number): boolean => rate >= LOWEST_RATE && rate <= HIGHEST_RATE;

/** Checks what a header states, before it decides time and memory. */
export function assertBounds(rate: number, samples: number, reject: RejectAudio): void {
  if (!isSampleRate(rate))
    throw reject(
      `its header states ${rate} samples a second, not ${LOWEST_RATE} to ${HIGHEST_RATE}`,
      'Record it again, or write its true rate into the header: ffmpeg -i FILE -af asetrate=RATE OUT.wav.',
    );
  if (samples > Math.min(MOST_SAMPLES, rate * MOST_SECONDS))
    throw reject(
      `it has ${samples} samples, more than ${MOST_SAMPLES} or ${MOST_SECONDS} seconds`,
      'Cut it into utterances: ffmpeg -i FILE -f segment -segment_time 60 OUT%03d.wav.',
    );
}

/** Averages channels, as NeMo and librosa do, and knows when they cancel each other. */
export class Mix {
  readonly samples: Float32Array;
  readonly #channels: number;
  #at = 0;
  #power = 0;

  constructor(samples: number, channels: number) {
    this.samples = new Float32Array(samples);
    this.#channels = channels;
  }

  /** The next frame: the sum of its channels, and of their squares. */
  add(sum: number, squares: number): void {
    this.samples[this.#at++] = sum / this.#channels;
    this.#power += squares / this.#channels;
  }

  /** Number of frames that were added. */
  get frames(): number {
    return this.#at;
  }

  /** Throws for silence made of sound: an average 60 dB below its channels. */
  assertSound(reject: RejectAudio): void {
    const power = this.samples.reduce((total, sample) => total + sample * sample, 0);
    if (this.#power > 0 && power < 1e-6 * this.#power)
      throw reject(
        'its channels are in antiphase, so their average is silent',
        "Take one of them: ffmpeg -i FILE -af 'pan=mono|c0=c0' OUT.wav.",
      );
  }
}

/** Zero crossings of the sinc on either side, at the lower of the two rates. */
const CROSSINGS = 32;
/** Of the Kaiser window: side lobes 100 dB down (Kaiser's 8.7 + 0.1102 (A - 8.7)). */
const BETA = 10.06;
/** Share of the lower Nyquist frequency that passes unharmed. */
const ROLLOFF = 0.945;

/**
 * Audio at another rate, by a windowed sinc: Kaiser window with beta 10.06, 32 zero crossings on either side, cut at 0.945 of the lower Nyquist frequency.
 * Sample n of the result is the sound at n / rate seconds. Rates that share no large divisor need a table of their product's size.
 */
export function resample({ samples, rate: from }: Audio, rate: number): Audio {
  if (from === rate) return { samples, rate };
  const divisor = greatestDivisor(from, rate);
  const [up, down] = [rate / divisor, from / divisor];
  const cut = ROLLOFF * Math.min(1, rate / from);
  const reach = Math.ceil(CROSSINGS / cut);
  const taps = 2 * reach;
  // One row of weights a phase: where between two samples the result lies.
  const phases = Float64Array.from({ length: up * taps }, (_, at) => {
    const distance = Math.floor(at / taps) / up + reach - 1 - (at % taps);
    return cut * sinc(cut * distance) * kaiser(distance / reach);
  });
  const out = new Float32Array(Math.ceil((samples.length * up) / down));
  for (let index = 0; index < out.length; index++) {
    const place = index * down;
    const center = Math.floor(place / up);
    const row = (place % up) * taps;
    let sum = 0;
    const first = center - reach + 1;
    const [start, end] = [Math.max(0, -first), Math.min(taps, samples.length - first)];
    for (let tap = start; tap < end; tap++) sum += samples[first + tap]! * phases[row + tap]!;
    out[index] = sum;
  }
  return { samples: out, rate };
}

const greatestDivisor = (a: number, b: number): number => (b === 0 ? a : greatestDivisor(b, a % b));

const sinc = (x: number): number => (x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x));

const kaiser = (x: number): number =>
  Math.abs(x) >= 1 ? 0 : bessel(BETA * Math.sqrt(1 - x * x)) / bessel(BETA);

/** Modified Bessel function of the first kind and order 0, by its series. */
function bessel(x: number): number {
  let [sum, term] = [1, 1];
  for (let k = 1; term > 1e-12 * sum; k++) {
    term *= (x / (2 * k)) ** 2;
    sum += term;
  }
  return sum;
}
