import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const children = readdirSync('dist', { recursive: true, encoding: 'utf8' }).filter(
  (path) => /-(?:child|thread)\.js$/.test(path) && !/(?:supervised|parity)-child\.js$/.test(path),
);

it.each(children)('%s starts from one file', (path) => {
  const imported = readFileSync(`dist/${path}`, 'utf8').matchAll(/^import .*? from "([^"]+)";$/gm);
  const others = [...imported].map(([, from = '']) => from).filter((from) => !from.startsWith('node:'));
  expect(others).toEqual([]);
});
