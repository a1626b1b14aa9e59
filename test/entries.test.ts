import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { inLibraryWords } from '../src/base/options/library-arguments.js';
import { defaultsOf } from '../src/base/options/option.js';
import { catalogue, TrtforgeError } from '../src/errors.js';
import { planStreams, type StreamsRequest } from '../src/products/deepstream/index.js';
import { defaultLimits } from '../src/products/deepstream/options.js';
import {
  type CompareBackEndsRequest,
  compareBackEnds,
  scoreTranscripts,
} from '../src/products/evaluation/index.js';
import { detectionOptions, imageRunOptions } from '../src/products/evaluation/options.js';
import { whichEngines } from '../src/products/fleet/index.js';
import { dynamicModel, staticModel } from './native/tiny-models.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-entries-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Throws an error in words of the command line wherever it is read. */
const fails = (): never => {
  throw new TrtforgeError('TF_USAGE', 'Pass --some-option.', { remedy: 'Remove --other.' });
};
const unreadable = new Proxy({}, { get: fails, ownKeys: fails, has: fails });

const { exports: entries } = JSON.parse(readFileSync('package.json', 'utf8')) as {
  readonly exports: Readonly<Record<string, { readonly default: string }>>;
};

/** The functions of every entry whose documentation states what they throw. Images are read as they are iterated. */
const throwing = readFileSync('docs/library.md', 'utf8')
  .split(/^## (?=trtforge)|^## Options/m)
  .slice(1, -1)
  .flatMap((section) => {
    const [entry = '', ...functions] = section.split(/^### /m);
    return functions
      .map((text) => /^(\w+)\n\n([\s\S]*?)\n\n[`]/.exec(text) ?? [])
      .filter(([, name, says = '']) => /\bthrows?\b|Errors:/i.test(says) && name !== 'imageSamples')
      .map(([, name = '']) => ({ place: entry.split('\n')[0]!.replace('trtforge', '.'), name }));
  })
  .filter(({ place }) => place !== '.');

test.each(throwing)('$place: $name throws in words of the library', async ({ place, name }) => {
  const room = await import(entries[place]!.default.replace('./dist', '../src').replace(/js$/, 'ts'));
  const call = async () => room[name](unreadable, unreadable, unreadable);
  await expect(call()).rejects.toMatchObject({ message: 'Pass `someOption`.', remedy: 'Remove `other`.' });
});

test('every entry has such functions', () => {
  const places = Object.keys(entries).filter((place) => place !== '.' && !place.endsWith('.json'));
  expect(new Set(throwing.map(({ place }) => place))).toEqual(new Set(places));
});

const at = (name: string, content: string): string => {
  writeFileSync(join(folder, name), content);
  return join(folder, name);
};
const coco = (images: readonly object[]) =>
  at('truth.json', JSON.stringify({ images, categories: [{ id: 1, name: 'one' }], annotations: [] }));

const utterance = '{"audio_filepath": "a.wav", "text": "one two"}\n';
const compared = (more: Partial<CompareBackEndsRequest>) =>
  compareBackEnds({
    model: staticModel(folder),
    candidates: [],
    backEnds: ['ort-cpu'],
    output: join(folder, 'run'),
    data: coco([]),
    imagesDir: folder,
    precisions: [],
    open: {},
    ...defaultsOf({ ...imageRunOptions, ...detectionOptions }),
    ...more,
  });
const sized = (limits: Partial<StreamsRequest['limits']>) =>
  planStreams({
    model: dynamicModel(folder),
    names: {},
    input: {},
    limits: { ...defaultLimits, ...limits },
    fresh: false,
    sensitivity: false,
  });

test.each<[string, () => unknown, readonly string[]]>([
  ['whichEngines', () => whichEngines({ query: 'x', gpu: 'L4' }), ['gpu', 'inventory', 'triton']],
  [
    'scoreTranscripts',
    () => scoreTranscripts({ reference: at('r.jsonl', utterance), hypothesis: at('h.jsonl', '') }),
    ['allowMissing'],
  ],
  ['compareBackEnds', () => compared({ precisions: ['int8'] }), ['precisions', 'candidates']],
  [
    'planStreams',
    () => sized({ fps: [30], firstMaxBatch: 64, maxBatchLimit: 8 }),
    ['limits.firstMaxBatch', 'limits.maxBatchLimit'],
  ],
])('an error of %s names options that it takes', async (_name, call, options) => {
  const { message, remedy } = await (async () => call())().then(
    () => ({ message: '', remedy: '' }),
    (error: TrtforgeError) => error,
  );
  for (const option of options) expect(`${message} ${remedy}`).toContain(`\`${option}\``);
  expect(`${message} ${remedy}`.replaceAll(/`trtforge [^`]*`/g, '')).not.toMatch(/ --[a-z]/);
});

test('what an error is about is an option, too', async () => {
  await expect(compared({ backEnds: ['gpu'] })).rejects.toMatchObject({ details: { option: 'backEnds' } });
});

test('a flag that has no option stays one of the command line', () => {
  expect(inLibraryWords(catalogue.TF_OUTPUT_OF_OTHER_KIND.remedy)).toContain('`--force` of the command line');
});

test('an entry rejects an option that it does not have', async () => {
  await expect((async () => planStreams({ model: 'm.onnx', name: {} } as never))()).rejects.toMatchObject({
    code: 'TF_USAGE',
    details: { option: 'name' },
  });
});
