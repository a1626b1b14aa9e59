import fc from 'fast-check';
import { expect, it } from 'vitest';
import { TrtforgeError } from '../../../src/errors.js';
import { attribute as a, buildModel, GraphBuilder } from '../../../src/formats/onnx/builder.js';
import { inferDtypes } from '../../../src/formats/onnx/dtype-inference.js';
import { visitNodes } from '../../../src/formats/onnx/graph.js';
import { writeModel } from '../../../src/formats/onnx/write.js';
import { runs } from '../../support/runs.js';
import {
  converted,
  difference,
  type Feeds,
  floats,
  freshPath,
  integers,
  loads,
  noise,
  run,
  written,
} from './judge.js';
import { traps } from './models.js';
import { declareAll, mutation } from './mutated-graphs.js';

/** One random step: an operator and which earlier values it reads. */
interface Step {
  readonly kind: number;
  readonly first: number;
  readonly second: number;
  readonly keep: boolean;
  readonly output: boolean;
  readonly inBody: boolean;
}

const SHAPE = [2, 8];
const unary = ['Relu', 'Sigmoid', 'Tanh', 'Neg', 'Abs', 'Identity', 'Softmax', 'Erf', 'Sin', 'HardSigmoid'];
const binary = ['Add', 'Sub', 'Max', 'Min'];

type Emit = (g: GraphBuilder, name: string, x: string, y: string) => string;

/** Every operator keeps the shape and keeps values of about 1 there, so that any two can follow each other. */
const emitters: readonly Emit[] = [
  ...unary.map(
    (op): Emit =>
      (g, name, x) =>
        g.node(op, { name, inputs: [x], outputs: [`${name}.out`] }),
  ),
  ...binary.map(
    (op): Emit =>
      (g, name, x, y) => {
        g.node(op, { name, inputs: [x, y], outputs: [`${name}.sum`] });
        return g.node('Tanh', { name: `${name}.tanh`, inputs: [`${name}.sum`], outputs: [`${name}.out`] });
      },
  ),
  (g, name, x) => {
    g.initializer(`${name}.w`, noise([8, 8], 0.4, name.length + name.charCodeAt(1)));
    return g.node('MatMul', { name, inputs: [x, `${name}.w`], outputs: [`${name}.out`] });
  },
  (g, name, x) => {
    g.initializer(`${name}.shared`, noise([8, 8], 0.3, 5));
    g.node('MatMul', { name: `${name}.one`, inputs: [x, `${name}.shared`], outputs: [`${name}.h`] });
    g.node('Exp', { name: `${name}.exp`, inputs: [`${name}.shared`], outputs: [`${name}.e`] });
    g.node('MatMul', { name, inputs: [`${name}.h`, `${name}.e`], outputs: [`${name}.big`] });
    return g.node('Tanh', { name: `${name}.tanh`, inputs: [`${name}.big`], outputs: [`${name}.out`] });
  },
  (g, name, x, y) => {
    g.node('Concat', { name, inputs: [x, y], outputs: [`${name}.both`], attributes: { axis: a.int(1) } });
    g.node('Split', {
      name: `${name}.split`,
      inputs: [`${name}.both`],
      outputs: [`${name}.out`, `${name}.rest`],
      attributes: { axis: a.int(1) },
    });
    return `${name}.out`;
  },
  (g, name, x) => {
    g.node('Cast', { name, inputs: [x], outputs: [`${name}.half`], attributes: { to: a.int(10) } });
    return g.node('Cast', {
      name: `${name}.back`,
      inputs: [`${name}.half`],
      outputs: [`${name}.out`],
      attributes: { to: a.int(1) },
    });
  },
  (g, name, x) => {
    g.initializer(`${name}.zero`, floats([], [0]));
    g.node('Greater', { name, inputs: [x, `${name}.zero`], outputs: [`${name}.positive`] });
    g.node('Elu', { name: `${name}.elu`, inputs: [x], outputs: [`${name}.bent`] });
    return g.node('Where', {
      name: `${name}.where`,
      inputs: [`${name}.positive`, x, `${name}.bent`],
      outputs: [`${name}.out`],
    });
  },
  (g, name, x) => {
    g.node('Shape', { name: `${name}.shape`, inputs: [x], outputs: [`${name}.dims`] });
    g.node('Transpose', { name, inputs: [x], outputs: [`${name}.t`] });
    return g.node('Reshape', {
      name: `${name}.reshape`,
      inputs: [`${name}.t`, `${name}.dims`],
      outputs: [`${name}.out`],
    });
  },
  (g, name, x) => {
    g.initializer(`${name}.indices`, integers([2], [1, 0]));
    return g.node('Gather', { name, inputs: [x, `${name}.indices`], outputs: [`${name}.out`] });
  },
];

const steps = fc.array(
  fc.record<Step>({
    kind: fc.nat(emitters.length - 1),
    first: fc.nat(40),
    second: fc.nat(40),
    keep: fc.integer({ min: 0, max: 3 }).map((number) => number === 0),
    output: fc.integer({ min: 0, max: 4 }).map((number) => number === 0),
    inBody: fc.integer({ min: 0, max: 5 }).map((number) => number === 0),
  }),
  { minLength: 1, maxLength: 14 },
);

function graphOf(list: readonly Step[]): GraphBuilder {
  const g = new GraphBuilder('random');
  const values = [g.input('x', 'float32', SHAPE), g.input('y', 'float32', SHAPE)];
  g.input('flag', 'bool', []);
  for (const [index, step] of list.entries()) {
    const name = `${step.keep ? 'keep' : 'low'}${index}`;
    const pick = (number: number) => values[number % values.length] ?? 'x';
    const emit = emitters[step.kind] ?? (() => 'x');
    let result: string;
    if (step.inBody) {
      const yes = new GraphBuilder('yes');
      yes.output(emit(yes, `${name}.yes`, pick(step.first), pick(step.second)), 'float32', SHAPE);
      const no = new GraphBuilder('no');
      no.node('Pow', {
        name: `${name}.no`,
        inputs: [pick(step.second), pick(step.second)],
        outputs: [`${name}.no.out`],
      });
      no.output(`${name}.no.out`, 'float32', SHAPE);
      result = g.node('If', {
        name,
        inputs: ['flag'],
        outputs: [`${name}.if`],
        attributes: { then_branch: a.body(yes), else_branch: a.body(no) },
      });
    } else result = emit(g, name, pick(step.first), pick(step.second));
    values.push(result);
    if (step.output || index === list.length - 1) g.output(result, 'float32', SHAPE);
  }
  return g;
}

const feeds: Feeds = {
  x: noise(SHAPE, 1, 11),
  y: noise(SHAPE, 1, 12),
  flag: { dtype: 'bool', shape: [], bytes: Uint8Array.of(1) },
};
const keepNodes = [/^keep/];
const spec = { opset: 17 };

it('converts any graph to one that ONNX Runtime runs with nearly the same results, however it is mixed', async () => {
  await fc.assert(
    fc.asyncProperty(steps, fc.constantFrom('keep' as const, 'convert' as const), async (list, ioTypes) => {
      const input = await written(graphOf(list), spec);
      const { output } = await converted(input, { keepNodes, ioTypes });
      expect(difference(await run(input, feeds), await run(output, feeds))).toBeLessThan(0.05);
    }),
    { numRuns: runs(150), seed: 20261121 },
  );
});

it('converts any graph to a well typed BF16 one, without a cast that casts a type to itself or straight back', async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (list) => {
      const { model } = await converted(await written(graphOf(list), spec), {
        precision: 'bf16',
        keepNodes,
      });
      expect(inferDtypes(model.proto).violations).toEqual([]);
      const made = new Map<string, number>();
      for (const { node } of visitNodes(model.proto)) {
        if (node.opType !== 'Cast') continue;
        const to = Number(node.attribute.find(({ name }) => name === 'to')?.i);
        // The graph's own casts to FP16 may repeat each other; ours are to BF16 and back.
        if (to === 10) continue;
        const key = `${node.input[0]} ${to}`;
        expect(made.has(key), `${node.input[0]} is cast to ${to} twice`).toBe(false);
        made.set(key, to);
      }
    }),
    { numRuns: runs(150), seed: 7 },
  );
});

it('changes nothing when it converts its own result', async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (list) => {
      const once = await converted(await written(graphOf(list), spec), { keepNodes });
      const twice = await converted(once.output, { keepNodes });
      expect(twice.nodes.map(({ opType, input, output }) => [opType, input, output])).toEqual(
        once.nodes.map(({ opType, input, output }) => [opType, input, output]),
      );
    }),
    { numRuns: runs(100), seed: 8 },
  );
});

/** Graphs of these steps, and the small models that converters stumbled over. */
const anyModel = fc.oneof(
  steps.map((list) => () => buildModel(graphOf(list), spec)),
  fc.constantFrom(...traps).map((trap) => () => buildModel(trap.graph(), trap.spec)),
);

it('any change of a declared graph gives a well typed model, which loads where the original does, or our error', async () => {
  const outcomes = { written: 0, loaded: 0, refused: 0 };
  // Loading takes longest: the first FP16 model that loads, then one in four.
  let sinceLoaded = 3;
  await fc.assert(
    fc.asyncProperty(
      anyModel,
      fc.boolean(),
      mutation,
      fc.constantFrom('fp16' as const, 'bf16' as const),
      fc.constantFrom('keep' as const, 'convert' as const),
      async (model, isDeclared, mutate, precision, ioTypes) => {
        const changed = model();
        if (isDeclared) declareAll(changed.proto);
        mutate(changed.proto);
        const input = freshPath();
        try {
          await writeModel(changed, input);
          const { model: result, output } = await converted(input, { precision, ioTypes });
          expect(inferDtypes(result.proto).violations).toEqual([]);
          outcomes.written++;
          if (precision === 'bf16' || ++sinceLoaded < 4 || !(await loads(input))) return;
          expect(await loads(output)).toBe(true);
          outcomes.loaded++;
          sinceLoaded = 0;
        } catch (error) {
          if (!(error instanceof TrtforgeError) || error.code === 'TF_INTERNAL') throw error;
          outcomes.refused++;
        }
      },
    ),
    { numRuns: runs(500), seed: 8 },
  );
  expect(outcomes.written).toBeGreaterThan(runs(100));
  expect(outcomes.loaded).toBeGreaterThan(runs(4) - 1);
  expect(outcomes.refused).toBeGreaterThan(runs(30) - 1);
});
