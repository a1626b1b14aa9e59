import { expect, test } from 'vitest';
import { parseYaml } from '../../../src/base/text/yaml.js';

const parse = (text: string) => parseYaml(text, 'a.yaml', 'TF_CONFIG_INVALID');
const MEBIBYTE = 1 << 20;
const each = (count: number, line: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => line(index)).join('\n');

test('gives content and the lines of its parts, of YAML and of JSON', () => {
  const yaml = parse('a: 1\nb:\n  - x\n  - y: &one 2\n  - *one\n');
  expect(yaml.content).toEqual({ a: 1, b: ['x', { y: 2 }, 2] });
  expect([yaml.lineOf(['b', 1, 'y']), yaml.lineOf(['b', 9]), yaml.lineOf(['c'])]).toEqual([4, 3, null]);
  expect(parse('{\n\t"a": [1, true, "\\u00e9"]\n}').content).toEqual({ a: [1, true, 'é'] });
});

test('an error names the line', () => {
  expect(() => parse('a: 1\nb: [\n')).toThrow(expect.objectContaining({ code: 'TF_CONFIG_INVALID' }));
  expect(() => parse('a: 1\nb: "x" "y"\n')).toThrow(/line 2\b/);
});

test.each([
  ['more than a mebibyte', () => ' '.repeat(MEBIBYTE + 1)],
  ['anchors', () => each(101, (index) => `k${index}: &a${index} 1`)],
  ['aliases', () => `a: &a 1\n${each(101, (index) => `k${index}: *a`)}`],
  ['a bomb of aliases', () => `a0: &a0 [x]\n${each(30, (i) => `a${i + 1}: &a${i + 1} [*a${i}, *a${i}]`)}`],
  ['keys', () => each(60_000, (index) => `k${index}: 1`)],
  ['errors', () => '"'.repeat(200_000)],
  ['nesting of JSON', () => '['.repeat(MEBIBYTE)],
  ['nesting below the bound of tokens', () => '['.repeat(50_000)],
  ['nesting of keys', () => '? '.repeat(40_000)],
  ['an alias of nothing', () => '- *a\n'],
])('%s: rejected before it costs time or memory', (_what, text) => {
  expect(() => parse(text())).toThrow(expect.objectContaining({ code: 'TF_CONFIG_INVALID' }));
});
