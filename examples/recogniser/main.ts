import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { runExample, UsageError } from '../usage.js';
import { ESPEAK_VERSION, espeakVersion } from './espeak.js';
import { type Digests, testUtterance, trainingUtterance, writeSet } from './speech-set.js';

const USAGE = `node build/examples/recogniser/main.js SET [options]

Synthesizes phrases with espeak-ng ${ESPEAK_VERSION} into WAV files, with a manifest.tsv.
  test    200 phrases with noise, two voices and one kind of noise that are not in the training set;
          digests of these must be those of examples/recogniser/test-set.sha256
  train   clean phrases, for train.py

  --count <integer>  number of phrases (default 200 and 12000)
  --digests          print the digests without checking them
  -o, --output       the folder (default out/speech-test, out/speech-train)
`;

const sets = {
  test: { utterance: testUtterance, count: 200 },
  train: { utterance: trainingUtterance, count: 12_000 },
};

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      count: { type: 'string' },
      digests: { type: 'boolean', default: false },
      output: { type: 'string', short: 'o' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return void process.stdout.write(USAGE);
  const [name = ''] = positionals;
  if (name !== 'test' && name !== 'train')
    throw new UsageError(`"${name}" is not a set. Name test or train.`);
  const set = sets[name];
  const count = Number(values.count ?? set.count);
  if (!Number.isSafeInteger(count) || count < 1)
    throw new UsageError(`The count "${values.count}" is not an integer above 0.`);
  const version = await espeakVersion();
  if (version !== ESPEAK_VERSION)
    throw new UsageError(
      `This machine has ${version === undefined ? 'no espeak-ng' : `espeak-ng ${version}`}. Install espeak-ng ${ESPEAK_VERSION}.`,
    );
  const folder = values.output ?? `out/speech-${name}`;
  const utterances = Array.from({ length: count }, (_, index) => set.utterance(index));
  const digests = await writeSet(utterances, folder);
  if (values.digests) process.stdout.write(listOf(digests));
  else if (name === 'test') assertSame(digests);
  process.stdout.write(values.digests ? '' : `${join(folder, 'manifest.tsv')}  ${count} phrases\n`);
}

/** As sha256sum writes and reads it. */
const listOf = (digests: Digests): string =>
  [...digests]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([file, digest]) => `${digest}  ${file}\n`)
    .join('');

/** Results compare only over the same sound: of the committed test set, and where more phrases are asked for, of those that it has. */
function assertSame(digests: Digests): void {
  // This file runs from build/examples/recogniser.
  const committed = fileURLToPath(new URL('../../../examples/recogniser/test-set.sha256', import.meta.url));
  const expected = new Map(
    readFileSync(committed, 'utf8')
      .trim()
      .split('\n')
      .map((line) => [line.slice(66), line.slice(0, 64)]),
  );
  const other = [...digests]
    .filter(([file, digest]) => (expected.get(file) ?? digest) !== digest)
    .map(([file]) => file);
  if (other.length > 0)
    throw new UsageError(
      `${other.length} of ${digests.size} files differ from ${committed}, first ${other[0]}. Use espeak-ng ${ESPEAK_VERSION} of Debian 12, or pass --digests.`,
    );
}

await runExample(main, USAGE);
