import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { RandomStream } from '../models/random.js';
import { ESPEAK_RATE, type Speech, speak } from './espeak.js';
import { type Noise, noises, withNoise } from './noise.js';
import { phrase } from './phrases.js';
import { trainingVoices, unseenVoices } from './voices.js';
import { wavOf } from './wav.js';

export interface Utterance extends Speech {
  /** Of the WAV file and in the manifest. */
  readonly id: string;
  readonly noise: Noise;
  /** Of the speech above the noise. */
  readonly decibels: number;
  /** 0 to 1. */
  readonly gain: number;
  /** Seconds of silence before the speech. */
  readonly silence: number;
}

/** Phrase number `index` of the training set: clean, since training adds noise of its own each time. */
export function trainingUtterance(index: number): Utterance {
  const id = `train-${String(index).padStart(5, '0')}`;
  const random = new RandomStream(1, id);
  return {
    id,
    ...speechBy(random, random.oneOf(trainingVoices)),
    noise: 'none',
    decibels: 0,
    gain: 1,
    silence: 0,
  };
}

/** Phrase number `index` of the test set: every second one by a voice that training never heard, noises in turn. */
export function testUtterance(index: number): Utterance {
  const id = `test-${String(index).padStart(3, '0')}`;
  const random = new RandomStream(2, id);
  const voices = index % 2 === 0 ? trainingVoices : unseenVoices;
  return {
    id,
    ...speechBy(random, random.oneOf(voices)),
    noise: noises[(index >> 1) % noises.length]!,
    decibels: 5 + random.below(16),
    gain: 0.25 + 0.05 * random.below(13),
    silence: 0.05 * random.below(7),
  };
}

const speechBy = (random: RandomStream, voice: string): Speech => ({
  text: phrase(random),
  voice,
  speed: 120 + random.below(91),
  pitch: 20 + random.below(61),
});

/** Speaks an utterance: the bytes of a WAV file at ESPEAK_RATE. */
export async function record(utterance: Utterance): Promise<Buffer> {
  const { id, noise, decibels, gain, silence } = utterance;
  const speech = await speak(utterance);
  const padded = new Float32Array(Math.round(silence * ESPEAK_RATE) + speech.length);
  padded.set(
    speech.map((value) => value * gain),
    padded.length - speech.length,
  );
  const setting = { kind: noise, decibels, rate: ESPEAK_RATE };
  return wavOf(withNoise(padded, setting, new RandomStream(3, id)), ESPEAK_RATE);
}

/** SHA-256 by the name of the file. */
export type Digests = ReadonlyMap<string, string>;

/** Records utterances into `ID.wav` of a folder, several at a time, with `manifest.tsv` as `trtforge eval recogniser` reads it. */
export async function writeSet(utterances: readonly Utterance[], folder: string): Promise<Digests> {
  mkdirSync(folder, { recursive: true });
  const digests = new Map<string, string>();
  const waiting = utterances.values();
  const work = async () => {
    for (const utterance of waiting) {
      const bytes = await record(utterance);
      writeFileSync(join(folder, `${utterance.id}.wav`), bytes);
      digests.set(`${utterance.id}.wav`, createHash('sha256').update(bytes).digest('hex'));
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, work));
  const rows = utterances.map(
    ({ id, text, voice, speed, pitch, noise, decibels }) =>
      `${[id, `${id}.wav`, text, voice, speed, pitch, noise, noise === 'none' ? '' : decibels].join('\t')}\n`,
  );
  const header = 'utt_id\twav_path\tref_text\tvoice\tspeed\tpitch\tnoise\tdecibels\n';
  writeFileSync(join(folder, 'manifest.tsv'), `${header}${rows.join('')}`);
  return digests;
}
