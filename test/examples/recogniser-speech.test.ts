import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { RandomStream } from '../../examples/models/random.js';
import { noises, withNoise } from '../../examples/recogniser/noise.js';
import { phrase, vocabulary } from '../../examples/recogniser/phrases.js';
import { testUtterance, trainingUtterance } from '../../examples/recogniser/speech-set.js';
import { trainingVoices, unseenVoices } from '../../examples/recogniser/voices.js';
import { wavOf } from '../../examples/recogniser/wav.js';
import { readWav } from '../../src/formats/audio/wav.js';

const committed = (name: string) =>
  readFileSync(new URL(`../../examples/recogniser/${name}`, import.meta.url), 'utf8')
    .trimEnd()
    .split('\n');

const numbered = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => make(index));

test('integers below a bound are all drawn, about equally often', () => {
  const random = new RandomStream(1, 'integers');
  const counts = new Array<number>(7).fill(0);
  for (let draw = 0; draw < 70_000; draw++) counts[random.below(7)]!++;
  expect(counts).toHaveLength(7);
  for (const count of counts) expect(Math.abs(count - 10_000)).toBeLessThan(500);
});

test('phrases have the words of the vocabulary, all of them, and the labels are that vocabulary', () => {
  const random = new RandomStream(1, 'phrases');
  const words = numbered(2000, () => phrase(random).split(' ')).flat();
  expect([...new Set(words)].sort()).toEqual([...vocabulary].sort());
  expect(committed('labels.txt')).toEqual(vocabulary.map((word) => `▁${word}`));
});

test('half of the test set is spoken by two voices whose accents and speakers no training phrase has, and a kind of noise is in the test set alone', () => {
  const [training, tested] = [numbered(2000, trainingUtterance), numbered(200, testUtterance)];
  const parts = (voice: string) => voice.split('+');
  const heard = new Set([...trainingVoices, ...training.map(({ voice }) => voice)].flatMap(parts));
  expect(unseenVoices.flatMap(parts).filter((part) => heard.has(part))).toEqual([]);
  expect(tested.filter(({ voice }) => unseenVoices.includes(voice))).toHaveLength(100);
  expect(new Set(tested.map(({ noise }) => noise))).toEqual(new Set(noises));
  expect(new Set(training.map(({ noise }) => noise))).toEqual(new Set(['none']));
});

test('utterances depend on their number alone, and the committed list has one digest for each', () => {
  expect(testUtterance(17)).toEqual(testUtterance(17));
  expect(testUtterance(17)).not.toEqual(testUtterance(19));
  expect(committed('test-set.sha256').map((line) => line.slice(66))).toEqual(
    numbered(200, (index) => `${testUtterance(index).id}.wav`),
  );
});

test.each(noises.filter((kind) => kind !== 'none'))(
  '%s noise is as far below the speech as stated',
  (kind) => {
    const clean = Float32Array.from({ length: 22_050 }, (_, at) => 0.3 * Math.sin(at / 9));
    const noisy = withNoise(clean, { kind, decibels: 10, rate: 22_050 }, new RandomStream(1, kind));
    const energy = (samples: Float32Array) => samples.reduce((sum, value) => sum + value * value, 0);
    const ratio = energy(clean) / energy(noisy.map((value, at) => value - clean[at]!));
    expect(10 * Math.log10(ratio)).toBeCloseTo(10, 3);
  },
);

test('a WAV file is read as it was written, within the step of 16 bits, and cut off at its limits', () => {
  const folder = mkdtempSync(join(tmpdir(), 'trtforge-speech-'));
  try {
    const path = join(folder, 'a.wav');
    writeFileSync(path, wavOf(Float32Array.of(0, 0.5, -1, 2, 1 / 3), 22_050));
    const { rate, samples } = readWav(path);
    expect(rate).toBe(22_050);
    expect([...samples.subarray(0, 4)]).toEqual([0, 0.5, -1, 32_767 / 32_768]);
    expect(samples[4]).toBeCloseTo(1 / 3, 4);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
