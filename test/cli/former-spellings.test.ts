import { describe, expect, test } from 'vitest';
import { withOwnFlags } from '../../src/cli/migrate/own-flags.js';
import { foreignFlags } from '../../src/cli/migrate/tables.js';
import { wrongLines } from '../support/spelled-lines.js';
import { program, trtforge } from '../support/trtforge.js';

const spellings = (await foreignFlags(program.products)).flatMap(({ flag, only = '', moved }) =>
  moved === undefined ? [] : [`${moved.from} ${flag} ${only}`.trim()],
);

/** By the spelling as its product names it: an old line, and the line that is answered. */
const lines: readonly (readonly [was: string, old: string, now: string])[] = [
  ['inspect --against', 'inspect a.engine --against b.engine', 'engine diff a.engine b.engine'],
  [
    'inspect --against',
    'inspect a.engine --layers --layers-from a.json --against=b.engine --device 1',
    'engine diff a.engine --from a.json b.engine --device 1',
  ],
  ['inspect --layers', 'inspect a.engine --layers --json', 'engine layers a.engine --json'],
  ['inspect --layers-from', 'inspect a.engine --layers-from a.json', 'engine layers a.engine --from a.json'],
  [
    'inspect --strip-header',
    'inspect yolo.engine --strip-header yolo.plan',
    'engine strip-header yolo.engine -o yolo.plan',
  ],
  [
    'bench --against',
    'bench a.engine --against b.engine --fail-above 1.02',
    'bench compare a.engine b.engine --fail-above 1.02',
  ],
  [
    'bench --against',
    'bench a.engine --against b.engine --against-mode graph',
    'bench compare a.engine b.engine --mode graph',
  ],
  [
    'bench --against',
    'bench --fail-above 1.02 --against b.engine a.engine',
    'bench compare --fail-above 1.02 a.engine b.engine',
  ],
  ['bench --against-mode', 'bench a.engine --against-mode=graph', 'bench compare a.engine --mode graph'],
  [
    'build --meta',
    'build --meta m.json --outdir out --precision fp16',
    'bundle build m.json --outdir out --precision fp16',
  ],
  ['forge --meta', 'forge --meta=m.json --run-root out', 'bundle forge m.json --outdir out'],
  [
    'verify --contract-only',
    'verify m.onnx --contract-only --contract c.json --reference r.jsonl',
    'stream check m.onnx --contract c.json --reference r.jsonl',
  ],
  [
    'verify --reference',
    'verify m.engine --reference r.jsonl --mode closed-loop',
    'stream verify m.engine --reference r.jsonl --mode closed-loop',
  ],
  [
    'record --convert',
    'record --convert a.jsonl -o ref --skip-damaged',
    'stream convert a.jsonl -o ref --skip-damaged',
  ],
  [
    'record --draft-contract',
    'record m.onnx --draft-contract c.json --schedule 41,57',
    'stream draft m.onnx -o c.json --schedule 41,57',
  ],
  ['record', 'record m.onnx -o ref.jsonl --chunks 50', 'stream record m.onnx -o ref.jsonl --chunks 50'],
  [
    'streams --from-logs',
    'streams models/yolo --from-logs --fps 30',
    'deepstream repair models/yolo --fps 30',
  ],
  ['streams', 'streams yolo.onnx --sensitivity', 'deepstream size yolo.onnx --sensitivity'],
  ['inspect --format deepstream', 'inspect m.onnx --format deepstream', 'deepstream summary m.onnx'],
];

describe('a spelling of earlier releases', () => {
  test.each(lines)('%s: %s', async (was, old, now) => {
    const { exitCode, err, out } = await trtforge(old.split(' '), {});
    expect([exitCode, out === '' || old.includes('--json')]).toEqual([2, true]);
    const message = old.includes('--json') ? out : err;
    expect(message).toContain('TF_USAGE');
    expect(message).toContain(`\`${was}\` is now \`${now.split(' ').slice(0, 2).join(' ')}\``);
    expect(message).toContain(`Run: trtforge ${now}`);
    expect(wrongLines(`trtforge ${now}`)).toEqual([]);
  });

  test('is in this table, whatever product it comes from', () => {
    expect([...new Set(lines.map(([was]) => was))].sort()).toEqual(spellings.toSorted());
  });

  test.each(['inspect m.onnx', 'bench m.engine', 'build m.onnx', 'verify a.onnx --against b.onnx'])(
    'is none of today: %s',
    async (line) => {
      const args = line.split(' ');
      expect(await withOwnFlags(args, args[0] ?? '', program.products)).toEqual(args);
    },
  );
});
