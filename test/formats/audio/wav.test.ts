import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inflateSync } from 'node:zlib';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { TrtforgeError } from '../../../src/errors.js';
import { resample } from '../../../src/formats/audio/audio.js';
import { logMel, nemoFrontEnd } from '../../../src/formats/audio/log-mel.js';
import { readAudio } from '../../../src/formats/audio/read-audio.js';
import { readWav } from '../../../src/formats/audio/wav.js';
import { codeOf, codeOfWork } from '../../support/refusal.js';
import { runs } from '../../support/runs.js';

const fixtures = join(import.meta.dirname, '../../fixtures/audio');
const recorded = JSON.parse(readFileSync(join(fixtures, 'audio.json'), 'utf8')) as {
  readonly files: Readonly<Record<string, { readonly rate: number; readonly samples: string }>>;
  readonly features: readonly {
    readonly mels: number;
    readonly normalize: boolean;
    readonly frames: number;
    readonly values: string;
  }[];
  readonly resampled: string;
};
const unpack = (packed: string) => {
  const bytes = inflateSync(Buffer.from(packed, 'base64'));
  return new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength));
};
const errorsOf = (ours: Float32Array, theirs: Float32Array) => {
  expect(ours.length).toBe(theirs.length);
  return Float64Array.from(ours, (value, at) => Math.abs(value - theirs[at]!)).sort();
};
const folder = mkdtempSync(join(tmpdir(), 'trtforge-audio-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe.each(Object.entries(recorded.files))('%s', (name, { rate, samples }) => {
  it('has the samples that libsndfile reads', () => {
    const audio = readWav(join(fixtures, name));
    expect(audio.rate).toBe(rate);
    expect(errorsOf(audio.samples, unpack(samples)).at(-1)).toBeLessThan(1e-7);
  });
});

it('the fixtures are of every format', () => {
  expect(Object.keys(recorded.files)).toHaveLength(9);
});

it.each(['a-law.wav', 'cut.wav', 'audio.json', 'record.py'])('%s is TF_AUDIO_INVALID', (name) => {
  expect(codeOf(() => readWav(join(fixtures, name)))).toBe('TF_AUDIO_INVALID');
});

it.each(['pcm8', 'pcm16', 'pcm24', 'stereo'])(
  '%s.flac has the samples of the WAV it was made of',
  async (name) => {
    const flac = await readAudio(join(fixtures, `${name}.flac`));
    expect(flac).toEqual(await readAudio(join(fixtures, `${name}.wav`)));
  },
);

it('FLAC returns the same samples or throws TF_AUDIO_INVALID for changed files', async () => {
  const source = readFileSync(join(fixtures, 'stereo.flac'));
  const expected = (await readAudio(join(fixtures, 'stereo.flac'))).samples;
  const path = join(folder, 'changed.flac');
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.nat(source.length - 1), fc.nat(255)), { minLength: 1, maxLength: 6 }),
      fc.nat(),
      async (changes, end) => {
        const bytes = Buffer.from(source.subarray(0, end % 3 === 0 ? end % source.length : source.length));
        for (const [at, value] of changes) if (at < bytes.length) bytes[at] = value;
        writeFileSync(path, bytes);
        const outcome = await readAudio(path).then(
          ({ samples }) => samples,
          (error) => (error instanceof TrtforgeError ? error.code : String(error)),
        );
        // Where a changed header still decodes, the MD5 or the comparison with it was changed too.
        if (typeof outcome === 'string') expect(outcome).toBe('TF_AUDIO_INVALID');
        else if (bytes.subarray(26, 42).equals(source.subarray(26, 42))) expect(outcome).toEqual(expected);
      },
    ),
    { numRuns: runs(400) },
  );
});

/** PCM of 16 bits under a header of our own making. */
function wav(name: string, rate: number, channels: readonly (readonly number[])[], stated?: number): string {
  const frames = channels[0]?.length ?? 0;
  const bytes = Buffer.alloc(44 + 2 * frames * channels.length);
  bytes.write('RIFF....WAVEfmt ', 0, 'latin1');
  bytes.writeUInt32LE(16, 16);
  bytes.writeUInt16LE(1, 20);
  bytes.writeUInt16LE(channels.length, 22);
  bytes.writeUInt32LE(rate, 24);
  bytes.writeUInt16LE(2 * channels.length, 32);
  bytes.writeUInt16LE(16, 34);
  bytes.write('data', 36, 'latin1');
  bytes.writeUInt32LE(stated ?? bytes.length - 44, 40);
  for (let frame = 0, at = 44; frame < frames; frame++)
    for (const channel of channels) at = bytes.writeInt16LE(channel[frame]!, at);
  const path = join(folder, name);
  writeFileSync(path, bytes);
  return path;
}
const ramp = Array.from({ length: 400 }, (_, at) => 50 * at);
const negative = ramp.map((value) => -value);

it.each([0, 1, 999, 384_001, 1_000_003, 4_294_967_291])('a rate of %d is TF_AUDIO_INVALID', (rate) => {
  expect(codeOf(() => readWav(wav('rate.wav', rate, [ramp])))).toBe('TF_AUDIO_INVALID');
});

it.each([
  ['a size of 0 before sound', wav('size.wav', 16_000, [ramp], 0)],
  ['no sound', wav('none.wav', 16_000, [])],
  ['channels in antiphase', wav('antiphase.wav', 16_000, [ramp, negative])],
])('%s is TF_AUDIO_INVALID', (_, path) => {
  expect(codeOf(() => readWav(path))).toBe('TF_AUDIO_INVALID');
});

it('silence, and channels that differ, are valid', () => {
  const silent = ramp.map(() => 0);
  expect(readWav(wav('silent.wav', 16_000, [silent, silent])).samples).toHaveLength(400);
  expect(readWav(wav('half.wav', 16_000, [ramp, silent])).samples[2]).toBe(50 / 2 ** 15);
});

it('a size that a pipe could not know reaches to the end of the file', () => {
  const piped = readWav(wav('piped.wav', 16_000, [ramp], 0xffff_ffff));
  expect(piped).toEqual(readWav(wav('whole.wav', 16_000, [ramp])));
});

it.each(['pcm8.wav', 'pcm8.flac'])('%s made as large as 5 GB is TF_AUDIO_INVALID', async (name) => {
  const path = join(folder, name);
  writeFileSync(path, readFileSync(join(fixtures, name)));
  truncateSync(path, 5e9);
  expect(await codeOfWork(readAudio(path))).toBe('TF_AUDIO_INVALID');
});

it.each([
  [384_000, 2 ** 26 + 1],
  [1000, 1800 * 1000 + 1],
])('at a rate of %d, %d samples are TF_AUDIO_INVALID before they are read', (rate, samples) => {
  const path = wav('long.wav', rate, [ramp], samples);
  const bytes = readFileSync(path);
  // 8 bits, so that the file stays below its own bound.
  bytes.writeUInt16LE(8, 34);
  writeFileSync(path, bytes);
  truncateSync(path, 44 + samples);
  expect(codeOf(() => readWav(path))).toBe('TF_AUDIO_INVALID');
});

it('returns or throws TF_AUDIO_INVALID for changed files', () => {
  const sources = ['pcm8.wav', 'extensible.wav', 'float.wav'].map((name) =>
    readFileSync(join(fixtures, name)),
  );
  fc.assert(
    fc.property(
      fc.constantFrom(...sources),
      fc.array(fc.tuple(fc.nat(120), fc.nat(255)), { minLength: 1, maxLength: 6 }),
      fc.nat(),
      (source, changes, end) => {
        const bytes = Buffer.from(source.subarray(0, end % 3 === 0 ? end % source.length : source.length));
        for (const [at, value] of changes) if (at < bytes.length) bytes[at] = value;
        writeFileSync(join(folder, 'changed.wav'), bytes);
        expect(['no error', 'TF_AUDIO_INVALID']).toContain(
          codeOf(() => readWav(join(folder, 'changed.wav'))),
        );
      },
    ),
    { numRuns: runs(2000) },
  );
});

it.each(recorded.features)(
  '$mels mels, normalised $normalize: the features of NeMo in float64',
  (expected) => {
    const { samples } = readWav(join(fixtures, 'pcm16.wav'));
    const features = logMel(samples, {
      ...nemoFrontEnd,
      mels: expected.mels,
      normalize: expected.normalize ? 'per-feature' : 'none',
    });
    expect(features).toMatchObject({
      mels: expected.mels,
      frames: expected.frames,
      valid: expected.frames - 1,
    });
    const errors = errorsOf(features.values, unpack(expected.values));
    expect(errors[Math.floor(0.999 * errors.length)]).toBeLessThanOrEqual(1e-5);
    expect(errors.at(-1)).toBeLessThanOrEqual(5e-5);
  },
);

it('a window of an odd size is centred as torch centres it, half a sample early', () => {
  const { samples } = readWav(join(fixtures, 'pcm16.wav'));
  const [even, odd] = [400, 399].map((window) =>
    logMel(samples, { ...nemoFrontEnd, normalize: 'none', window }),
  );
  expect(errorsOf(odd!.values, even!.values).at(-1)).toBeLessThan(1);
});

it('features of audio shorter than a hop have one frame, which does not count', () => {
  expect(logMel(new Float32Array(100), nemoFrontEnd)).toMatchObject({ frames: 1, valid: 0 });
  expect(logMel(new Float32Array(0), nemoFrontEnd).values.every(Number.isFinite)).toBe(true);
});

describe('resample', () => {
  it('agrees with soxr at its highest quality', () => {
    const { samples, rate } = resample(readWav(join(fixtures, 'espeak-rate.wav')), 16_000);
    expect(rate).toBe(16_000);
    const theirs = unpack(recorded.resampled);
    const common = Math.min(samples.length, theirs.length);
    const errors = errorsOf(samples.subarray(200, common - 200), theirs.subarray(200, common - 200));
    expect(errors.at(-1)).toBeLessThan(5e-3);
    expect(errors[Math.floor(errors.length / 2)]).toBeLessThan(5e-4);
  });

  it.each([
    [44_100, 16_000],
    [22_050, 16_000],
    [8_000, 16_000],
    [48_000, 16_000],
  ])('a tone of 997 Hz from %d to %d has 90 dB to its error', (from, to) => {
    const tone = (rate: number, count: number) =>
      Float32Array.from({ length: count }, (_, at) => 0.5 * Math.sin((2 * Math.PI * 997 * at) / rate));
    const { samples } = resample({ rate: from, samples: tone(from, from) }, to);
    const exact = tone(to, samples.length);
    let [signal, noise] = [0, 0];
    for (let at = 400; at < samples.length - 400; at++) {
      signal += exact[at]! ** 2;
      noise += (samples[at]! - exact[at]!) ** 2;
    }
    expect(10 * Math.log10(signal / noise)).toBeGreaterThan(90);
  });

  it('removes what the lower rate cannot hold', () => {
    const samples = Float32Array.from({ length: 44_100 }, (_, at) =>
      Math.sin((2 * Math.PI * 12_000 * at) / 44_100),
    );
    const out = resample({ rate: 44_100, samples }, 16_000).samples.subarray(400, -400);
    expect(Math.max(...out.map(Math.abs))).toBeLessThan(1e-4);
  });
});
