import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { shellLine, shellWords } from '../../src/base/text/shell-line.js';
import { attribute as a, GraphBuilder } from '../../src/formats/onnx/builder.js';
import { writeNpz } from '../../src/formats/tensor/npz.js';
import type { RunComparison } from '../../src/report/comparison/result.js';
import { freshPath, noise, written } from '../formats/precision/judge.js';
import { trtforge } from '../support/trtforge.js';

function network(): GraphBuilder {
  const g = new GraphBuilder('network');
  g.input('x', 'float32', ['n', 16, 8, 8]);
  for (const [layer, [from, to]] of [
    ['x', 'h'],
    ['t', 'y'],
  ].entries()) {
    g.initializer(`w${layer}`, noise([16, 16, 3, 3], 0.15, layer + 1));
    g.node('Conv', {
      name: `conv${layer}`,
      inputs: [from!, `w${layer}`],
      outputs: [to!],
      attributes: { pads: a.ints([1, 1, 1, 1]) },
    });
  }
  g.node('Tanh', { name: 'tanh', inputs: ['h'], outputs: ['t'] });
  g.output('y', 'float32', ['n', 16, 8, 8]);
  return g;
}
const model = await written(network());

const samples = (count: number, seed: number) => {
  const path = freshPath(" it's.npz");
  writeNpz(path, new Map([['x', noise([count, 16, 8, 8], 1, seed)]]));
  return path;
};
const [pictures, others] = [samples(16, 5), samples(6, 9)];

/** A run and its line; what it is judged by is seen in its samples. */
const forged = async (...words: readonly string[]) => {
  const root = freshPath('/run');
  const line = ['forge', model, ...words, '--skip', 'build,bench', '--run-root', root];
  expect((await trtforge(line)).exitCode).toBeLessThan(2);
  return root;
};

const accuracyOf = async (one: string, other: string) => {
  const path = freshPath('.json');
  const { exitCode } = await trtforge(['report', one, other, '--format', 'json', '-o', path]);
  expect(exitCode).toBe(0);
  const { pairs }: RunComparison = JSON.parse(readFileSync(path, 'utf8'));
  return pairs[0]!.parts.find(({ part }) => part === 'accuracy')!;
};

const calibrated = ['--precision', 'int8', '--calibration', pictures];

describe('two runs on other samples', () => {
  it.each([
    ['held out pictures and drawn samples', calibrated, ['--precision', 'fp16']],
    ['held out pictures and all of them', calibrated, ['--precision', 'fp16', '--inputs', pictures]],
    ['held out pictures and other pictures', calibrated, ['--precision', 'fp16', '--inputs', others]],
    [
      'pictures and drawn samples',
      ['--precision', 'fp16', '--inputs', others],
      ['--precision', 'bf16', '--seed', '3'],
    ],
  ])('name the line that compares them, in both directions: %s', async (_case, first, second) => {
    const [one, two] = [await forged(...first), await forged(...second)];
    for (const [a, b] of [
      [one, two],
      [two, one],
    ] as const) {
      const { notComparable } = await accuracyOf(a, b);
      const [, which, line] =
        /run ([AB]) on the samples of [AB]: trtforge (.*)$/.exec(notComparable[0] ?? '') ?? [];
      const root = freshPath('/run');
      const words = shellWords(line ?? '');
      expect((await trtforge(words.with(words.indexOf('--run-root') + 1, root))).exitCode).toBeLessThan(2);
      const again = await accuracyOf(which === 'A' ? root : a, which === 'B' ? root : b);
      expect(again.notComparable).toEqual([]);
    }
  });

  it('have no such line where both ranges have samples of their own', async () => {
    const int8 = await forged(...calibrated);
    const { notComparable } = await accuracyOf(
      int8,
      await forged('--precision', 'int8', '--calibration', others),
    );
    expect(notComparable).toHaveLength(1);
    expect(notComparable.join()).not.toContain('trtforge forge');
  });
});

it('a line is its words again', () => {
  const words = ['trtforge', 'forge', "it's", 'a b', '--keep-nodes', '^a\\/b$', '', "''"];
  expect(shellWords(shellLine(words))).toEqual(words);
});
