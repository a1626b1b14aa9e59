// Fails where an option was run by no test with a verdict (exit 0, 1 or 4), or is listed as one that none can run and was run after all. The tests note what they
// use in build/used (test/support/judged-commands.ts), file by file: both tiers must have run. test/unused.json lists by name what is not run, with the reason.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { longName } from '../dist/base/options/option.js';
import { enginesFileSchema } from '../dist/products/fleet/engines-file-schema.js';
import { modelKeys } from '../dist/products/fleet/model-options.js';
import { products } from '../dist/registry.js';
import { root } from './setup.mjs';

const notes = join(root, 'build', 'used');
if (!existsSync(notes)) {
  console.log('No test has noted what it used: run npm test and npm run test:full.');
  process.exit(1);
}

/** What the test files that there are have noted of a kind. */
const usedOf = (kind) =>
  new Set(
    readdirSync(notes, { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith(`.${kind}`))
      .filter((path) => existsSync(join(root, 'test', path.slice(0, -kind.length - 1))))
      .flatMap((path) => readFileSync(join(notes, path), 'utf8').trimEnd().split('\n')),
  );

const options = await Promise.all(
  products
    .flatMap(({ verbs }) => verbs)
    .map(async ({ path, load }) =>
      Object.values((await load()).options).map((spec) => `${path} --${longName(spec)}`),
    ),
);

/** The keys that a JSON Schema describes, as tests note them. */
const keysOf = ({ properties = {}, additionalProperties, items, anyOf = [] }, place = []) => [
  ...Object.entries(properties).flatMap(([key, inner]) => {
    const here = [...place, key];
    return [here.join('.'), ...keysOf(inner, here)];
  }),
  ...(place.join('.') === 'targets' ? keysOf(additionalProperties, [...place, '*']) : []),
  ...[items, ...anyOf].flatMap((inner) => (inner === undefined ? [] : keysOf(inner, place))),
];
const enginesFile = z.toJSONSchema(enginesFileSchema, { io: 'input', unrepresentable: 'any' });
const engines = [
  ...keysOf(enginesFile).filter((key) => !/olume(s|Mounts)\.name$/.test(key)),
  ...modelKeys.map((key) => `models.${key}`),
];

// What the functions of the library take they tell where they are called: test/library-options.integration.test.ts.
const offered = { options: options.flat(), engines, library: [...usedOf('offered')] };

/** By kind and reason: names. */
const excused = JSON.parse(readFileSync(join(root, 'test', 'unused.json'), 'utf8'));

const faults = Object.entries(offered).flatMap(([kind, names]) => {
  const used = usedOf(kind);
  const listed = Object.values(excused[kind] ?? {}).flat();
  return [
    ...names
      .filter((name) => !used.has(name) && !listed.includes(name))
      .map((name) => `${name}: no test runs it`),
    ...listed
      .filter((name) => used.has(name))
      .map((name) => `${name}: run after all, remove it from test/unused.json`),
    ...listed
      .filter((name) => !names.includes(name))
      .map((name) => `${name}: is none, remove it from test/unused.json`),
  ];
});
for (const fault of faults) console.log(fault);
process.exitCode = faults.length === 0 ? 0 : 1;
