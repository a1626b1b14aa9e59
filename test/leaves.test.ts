import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type Product, searchesOf } from '../src/cli/command.js';
import { runProgram } from '../src/cli/program/program.js';
import { catalogue } from '../src/errors.js';
import type { FailedComparison } from '../src/quality/verify/verify.js';
import { products } from '../src/registry.js';
import { recordedConsole } from './fakes/console.js';
import { codeIn, program } from './support/trtforge.js';

const source = join(import.meta.dirname, '../src');
const leaves = products.filter(({ name }) => name !== 'core');
const without = (leaf: string) => products.filter(({ name }) => name !== leaf);
const verbsOf = (list: readonly Product[]) => list.flatMap(({ verbs }) => verbs);
const paths = (list: readonly Product[]) => verbsOf(list).map(({ path }) => path);

/** What the program of these products prints. */
async function printed(list: readonly Product[], args: readonly string[]): Promise<string> {
  const { console, out } = recordedConsole();
  await runProgram({ ...program, products: list }, args, console);
  return out();
}

/** Verbs of the whole program that this one has a page of help for; for one that is gone it prints that of its family, or none. */
async function answering(list: readonly Product[]): Promise<readonly string[]> {
  const found: string[] = [];
  for (const path of paths(products)) {
    const page = await printed(list, [...path.split(' '), '--help']);
    if (page.startsWith(`Usage: trtforge ${path} [`)) found.push(path);
  }
  return found;
}

const sources = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((path) =>
  path.endsWith('.ts'),
);
const imports = sources.flatMap((path) => {
  const text = readFileSync(join(source, path), 'utf8');
  return [...text.matchAll(/(?:from|import\()\s*'(\.[^']+)'/g)].map(([, to = '']) => ({
    path,
    to: relative(source, resolve(source, dirname(path), to)),
  }));
});

test('every folder of products is a leaf of the list', () => {
  expect(leaves.map(({ name }) => name).sort()).toEqual(readdirSync(join(source, 'products')).sort());
});

describe.each(leaves.map(({ name, verbs }) => ({ name, own: verbs.map(({ path }) => path) })))(
  'without $name',
  ({ name, own }) => {
    test('its verbs are gone, and no other', async () => {
      expect(own.length).toBeGreaterThan(0);
      expect(await answering(without(name))).toEqual(paths(products).filter((path) => !own.includes(path)));
    });

    test('nothing else of the source is gone: only the list imports it', () => {
      const importers = imports.filter(
        ({ path, to }) => to.startsWith(`products/${name}/`) && !path.startsWith(`products/${name}/`),
      );
      expect(importers).toEqual([{ path: 'registry.ts', to: `products/${name}/product.js` }]);
    });
  },
);

test('a code that one leaf alone throws is in its descriptor, and no other', () => {
  const texts = sources
    .filter((path) => path !== 'errors.ts' && !path.endsWith('/product.ts'))
    .map((path) => ({ path, text: readFileSync(join(source, path), 'utf8') }));
  const users = (code: string) =>
    texts.filter(({ text }) => text.includes(`'${code}'`)).map(({ path }) => path);
  const alone = (name: string) =>
    Object.keys(catalogue).filter((code) => {
      const paths = users(code);
      return paths.length > 0 && paths.every((path) => path.startsWith(`products/${name}/`));
    });
  expect(leaves.map(({ name, errors = [] }) => ({ name, errors: [...errors].sort() }))).toEqual(
    leaves.map(({ name }) => ({ name, errors: alone(name).sort() })),
  );
});

test('every verb has options and a schema of its result', async () => {
  for (const verb of verbsOf(products)) {
    const { options, schema } = await verb.load();
    expect({ path: verb.path, options: typeof options, schema: typeof (await schema()).parse }).toEqual({
      path: verb.path,
      options: 'object',
      schema: 'function',
    });
  }
});

test('without evaluation, convert advise scores on no data', async () => {
  const line = 'convert advise model.onnx --calibration samples.npz --data boxes.json -o advice --json';
  const codeOf = async (list: readonly Product[]) => codeIn(JSON.parse(await printed(list, line.split(' '))));
  expect(await codeOf(products)).toBe('TF_FILE_NOT_FOUND');
  expect(await codeOf(without('evaluation'))).toBe('TF_USAGE');
});

test('without study, nothing searches after a failed comparison', async () => {
  expect(await searchesOf(without('study')).afterFailure({} as FailedComparison, {})).toBeUndefined();
});

test('without study, nobody heals', () => {
  expect(searchesOf(products).healer).toBeTypeOf('function');
  expect(searchesOf(without('study')).healer).toBeUndefined();
});
