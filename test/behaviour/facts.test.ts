import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseSync, Visitor } from 'oxc-parser';
import { describe, expect, test } from 'vitest';
import { behaviour, type Fact, holds, removal, seenOn } from '../../src/behaviour/facts.js';
import { trtexecFlags, trtexecValues } from '../../src/behaviour/trtexec.js';
import { compareVersions, type Range, rangeText } from '../../src/behaviour/versions.js';

const source = fileURLToPath(new URL('../../src', import.meta.url));

/** A version of TensorRT, TensorRT-RTX or trtexec in a text or regular expression. */
const VERSION =
  /(?<![\d.])(?:8\.[56]|9\.[0-3]|10\.1?\d|11\.\d|1\.[4-9]\.\d)(?:\.\d+)*(?![\d.]*\w)|(?<![\d.])(?:8|9|10|11)\.x|(?:TensorRT|trtexec)(?:-RTX)? \d|-rtx[- ]\d/;
/** A version in code. */
const COMPARED = /majorOf\([^)]*\)\s*[<>=!]+\s*\d|generation\w*(?:\(\w*\))?\s*[=!]==\s*'|isInLine\([^,]+, '/;

/** Where version numbers stand besides the tables, and why. */
const exceptions: Readonly<Record<string, RegExp>> = {
  'quality/explain/known-issues/': /./, // the patterns of these issues are log lines, and `versions` states where they were seen
  'formats/onnx/lint/quantization.ts': /^'10\.0'$/, // a compute capability
  'cli/commands/engine.ts': /layers-8\.6\.json/, // names of files in an example
  'cli/commands/inspect.ts': /10\.(3\.0\.26|13\.3\.9):sm_/, // examples
  'cli/commands/toolchain.ts': /env tensorrt-10\.6\.0\.26 /, // a name in an example
  'cli/values.ts': /10\.13/, // an example
  'engines/builder/options.ts': /tensorrt@10\.13\.3\.9:sm_90/, // an example
  'engines/identity/target.ts': /tensorrt@10\.13\.3\.9:sm_90|10\.6\.0\.26/, // examples
  'products/deepstream/commands/check.ts': /10\.14/, // an example
  'products/deepstream/options.ts': /10\.14/, // an example
  'products/deepstream/config/findings.ts': /DeepStream 9\.1/, // where a key is new
  'products/fleet/commands/rehearse.ts': /tensorrt@|10\.6\.0\.26/, // examples
  'products/fleet/rehearse.ts': /tensorrt@|10\.6\.0\.26/, // examples
  'products/fleet/which/which.ts': /--deepstream 9\.0|DeepStream: 9\.0/, // an example
  'products/triton/commands/check.ts': /10\.13/, // an example
  'products/triton/check/options.ts': /10\.13/, // an example
  'quality/doctor/support.ts': /^isInLine\(since, '$/, // a column of a published schema
};

function versionsIn(path: string): readonly string[] {
  const text = readFileSync(join(source, path), 'utf8');
  if (!VERSION.test(text) && !COMPARED.test(text)) return [];
  const found: string[] = [...text.matchAll(new RegExp(COMPARED, 'g'))].map(([code]) => code);
  const keep = ({ start, end }: { start: number; end: number }) => {
    const literal = text.slice(start, end);
    if (VERSION.test(literal)) found.push(literal);
  };
  new Visitor({ Literal: keep, TemplateElement: keep }).visit(parseSync(path, text).program);
  const allowed = Object.entries(exceptions).find(([start]) => path.startsWith(start))?.[1];
  return found.filter((each) => allowed?.test(each) !== true).map((each) => `${path}: ${each}`);
}

describe('facts by version', () => {
  test('stand in the tables of src/behaviour and nowhere else', () => {
    const files = readdirSync(source, { recursive: true, encoding: 'utf8' });
    const others = files.filter((path) => /\.c?ts$/.test(path) && !/^behaviour\/|onnx_pb\.ts$/.test(path));
    expect(others.flatMap(versionsIn)).toEqual([]);
    expect(versionsIn('behaviour/facts.ts').length).toBeGreaterThan(30);
  });

  test.each(['8.6', '10.16.1', 'TensorRT 11', 'TensorRT-RTX 1.7', 'on 10.6 only', 'trtexec 9'])(
    '%s is a version',
    (text) => expect(text).toMatch(VERSION),
  );

  test.each(['1.5rem', 'version="1.0"', '0.0.8.6', '8.64'])('%s is not', (text) =>
    expect(text).not.toMatch(VERSION),
  );

  const products = ['tensorrt', 'tensorrt-rtx', 'trtexec'] as const;
  const ranges = [
    ...Object.values<Fact>(behaviour).flatMap((fact) => products.flatMap((product) => fact[product] ?? [])),
    ...Object.values<Range>({ ...trtexecFlags, ...trtexecValues }),
    ...behaviour.generations.value,
  ];
  test('end after they begin', () => {
    expect(ranges.filter(({ since, until }) => until !== null && compareVersions(until, since) <= 0)).toEqual(
      [],
    );
  });

  test.each([
    ['weak-typing', 'tensorrt', '10.16.1.1', true],
    ['weak-typing', 'tensorrt', '11.0.0.1', false],
    ['weak-typing', 'tensorrt-rtx', '1.7.1.116', false],
    ['strong-typing', 'tensorrt', '8.6.1.6', false],
    ['strong-typing', 'tensorrt-rtx', '1.7.1.116', true],
    ['strong-typing', 'trtexec', '9.0.1', false],
    ['grid-sample-wrong', 'tensorrt', '11.1.0', true],
    ['grid-sample-wrong', 'tensorrt', '11.2.0', false],
  ] as const)('%s in %s %s: %s', (id, product, version, expected) =>
    expect(holds(id, { product, version })).toBe(expected),
  );

  test.each([
    [{ since: '10.4', until: null }, '10.4 and newer'],
    [{ since: '8.6', until: '11.0' }, '8.6 to 10.x'],
    [{ since: '10.13', until: '11.2' }, '10.13 to 11.1'],
    [{ since: '10', until: '11' }, '10.x'],
    [{ since: '8.6', until: '8.7' }, '8.6'],
  ])('%o for a sentence', (range, text) => expect(rangeText(range)).toBe(text));

  test('in sentences name the product and its version', () => {
    expect(seenOn('int4-blocks', 'tensorrt-rtx')).toBe('TensorRT-RTX 1.7.1');
    expect(removal('calibrators')).toBe('TensorRT 11 removed calibrators');
  });
});
