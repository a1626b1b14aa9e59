import { join } from 'node:path';
import { clone, create } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { modelFamilies } from '../../../../examples/models/catalogue.js';
import {
  AttributeProtoSchema,
  type GraphProto,
  GraphProtoSchema,
  ModelProtoSchema,
  type NodeProto,
  type OnnxModel,
  openModel,
  AttributeProto_AttributeType as Type,
} from '../../../../src/formats/onnx/index.js';
import { costFacts } from '../../../../src/formats/onnx/inspect.js';
import { flopRules } from '../../../../src/formats/onnx/shapes/flops.js';
import { inferShapes } from '../../../../src/formats/onnx/shapes/infer.js';
import { shapeRules } from '../../../../src/formats/onnx/shapes/shape-rules.js';
import { runs } from '../../../support/runs.js';
import { scratchFolder } from '../support/models.js';

const folder = scratchFolder();
const operators = [...shapeRules.keys(), ...flopRules.keys(), 'If', 'Loop', 'Scan', 'Plugin'];
const attributes =
  `axis axes perm pads strides dilations kernel_shape group auto_pad output_shape split starts ends steps num_outputs keepdims to shape
  blocksize hidden_size layout num_scan_inputs scan_input_axes scan_output_axes batch_dims equation ceil_mode onesided inverse value`.split(
    /\s+/,
  );

let original: OnnxModel;
beforeAll(async () => {
  const [path = ''] = await modelFamilies['streaming-encoder']!.write('tiny', join(folder, 'model'), {
    seed: 1,
    external: false,
  });
  original = openModel(path);
});

type Change = (graph: GraphProto) => void;
const position = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
const number = fc.oneof(
  fc.integer({ min: -3, max: 5 }),
  fc.constantFrom(0x7fffffff, 2 ** 53, -(2 ** 62), 2 ** 62),
);

const pick = <T>(list: readonly T[], at: number): T | undefined => list[Math.floor(at * list.length)];
const onNode =
  (at: number, change: (node: NodeProto) => void): Change =>
  (graph) => {
    const node = pick(graph.node, at);
    if (node !== undefined) change(node);
  };

/** Nodes of a graph and its bodies, each as often as it stands there. */
const nodesOf = ({ node }: GraphProto): number =>
  node
    .flatMap(({ attribute }) => attribute)
    .reduce((sum, { g }) => sum + (g === undefined ? 0 : nodesOf(g)), node.length);

const change: fc.Arbitrary<Change> = fc.oneof(
  fc.tuple(position, fc.constantFrom(...operators)).map(([at, op]) =>
    onNode(at, (node) => {
      node.opType = op;
    }),
  ),
  // Inputs of other nodes, themselves or nothing: other shapes, cycles, too few.
  fc.tuple(position, position, fc.nat(4), fc.boolean()).map(
    ([at, from, index, isEmpty]): Change =>
      (graph) => {
        const [node, other] = [pick(graph.node, at), pick(graph.node, from)];
        if (node !== undefined)
          node.input[Math.min(index, node.input.length)] = isEmpty ? '' : (other?.output[0] ?? '');
      },
  ),
  fc
    .tuple(position, fc.constantFrom(...attributes), fc.array(number, { maxLength: 5 }))
    .map(([at, name, numbers]) =>
      onNode(at, (node) => {
        const values = { name, type: Type.INTS, ints: numbers.map(BigInt), i: BigInt(numbers[0] ?? 0) };
        const others = node.attribute.filter((each) => each.name !== name);
        node.attribute = [...others, create(AttributeProtoSchema, values)];
      }),
    ),
  fc.tuple(position, position, number).map(
    ([at, axis, size]): Change =>
      (graph) => {
        const dims = pick(graph.initializer, at)?.dims;
        if (dims !== undefined && dims.length > 0) dims[Math.floor(axis * dims.length)] = BigInt(size);
      },
  ),
  fc.tuple(position, position, number).map(
    ([at, axis, size]): Change =>
      (graph) => {
        const type = pick(graph.input, at)?.type?.value;
        const dim = type?.case === 'tensorType' ? pick(type.value.shape?.dim ?? [], axis) : undefined;
        if (dim !== undefined) dim.value = { case: 'dimValue', value: BigInt(size) };
      },
  ),
  // A body made of the graph itself.
  fc.tuple(position, fc.constantFrom('If', 'Loop', 'Scan')).map(
    ([at, op]): Change =>
      (graph) => {
        const body = clone(GraphProtoSchema, graph);
        body.node = body.node.slice(0, 40);
        const node = pick(graph.node, at);
        if (node === undefined) return;
        node.opType = op;
        node.attribute = (op === 'If' ? ['then_branch', 'else_branch'] : ['body']).map((name) =>
          create(AttributeProtoSchema, { name, type: Type.GRAPH, g: body }),
        );
      },
  ),
);

describe('any change of a real graph', () => {
  it('leaves shapes that are known or not, without an error, and asks each node a few times', () => {
    let [asked, mostAsked] = [0, 0];
    const rules = shapeRules as Map<string, NonNullable<ReturnType<typeof shapeRules.get>>>;
    const counted = [...rules].map(([op, rule]) => [op, rule] as const);
    for (const [op, rule] of counted)
      rules.set(op, (call) => {
        asked++;
        return rule(call);
      });
    let gaps = 0;
    fc.assert(
      fc.property(fc.array(change, { minLength: 1, maxLength: 6 }), fc.boolean(), (changes, isOpen) => {
        const proto = clone(ModelProtoSchema, original.proto);
        for (const apply of changes) apply(proto.graph!);
        const sizes = new Map(isOpen ? [] : [['batch', 2] as const, ['time', 77] as const]);
        asked = 0;
        const nodes = nodesOf(proto.graph!);
        const found = inferShapes({ ...original, proto }, new Map(), sizes);
        const facts = costFacts(found);
        mostAsked = Math.max(mostAsked, asked / nodes);
        gaps += facts.gaps.length;
        for (const { shapes } of found.nodes.values())
          for (const size of shapes.flatMap((shape) => shape ?? []))
            if (typeof size === 'number' && !(Number.isSafeInteger(size) && size >= 0))
              throw new Error(`size ${size}`);
        for (const amount of [facts.flops, facts.peakActivationBytes])
          if (typeof amount === 'number' && !(amount >= 0)) throw new Error(`amount ${amount}`);
      }),
      { numRuns: runs(600) },
    );
    expect(gaps).toBeGreaterThan(runs(120));
    for (const [op, rule] of counted) rules.set(op, rule);
    expect(mostAsked).toBeLessThan(4);
  });
});
