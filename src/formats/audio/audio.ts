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
