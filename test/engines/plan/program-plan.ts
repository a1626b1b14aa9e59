import { samplePlan } from '../../support/sample-engine.js';

/** Kernels of a program in the form of tensorrt-rtx 1.7.1, a line each. */
export interface WrittenGraph {
  readonly accelerators?: string;
  /** Name to the plan's spelling of a type. */
  readonly tensors: Readonly<Record<string, string>>;
  readonly kernels: readonly string[];
  /** What computes shapes on the host, a statement a line. */
  readonly shapes?: readonly string[];
}

const word = (text: string) => `"${text.replace(/["\\]/g, '\\$&')}"`;
const quoted = (names: readonly string[]) => names.map(word).join(' ');
const layers = (nodes: readonly string[]) =>
  word(
    nodes
      .map((node, index) => `${'\u001e\u001f'[index % 2]}[ONNX Layer: ${node}]`)
      .join('')
      .slice(1),
  );

/** `corrltn={…}` and the like. */
export const operation = (
  kind: string,
  name: string,
  inputs: readonly string[],
  outputs: readonly string[],
  nodes: readonly string[],
) =>
  `${kind}={ name=${word(name)} output={${quoted(outputs)} } input={${quoted(inputs)} } stream=0 strides={ 1 1 } layers=${layers(nodes)} }`;

/** A generated kernel, whose last argument is a size. */
export const generated = (
  name: string,
  inputs: readonly string[],
  outputs: readonly string[],
  nodes: readonly string[],
) =>
  `function={ name=${name} input_args={ ${quoted([...inputs, 'size'])} } shape_args_count=1 output_args={ ${quoted(outputs)} } cond_fqn = { exec_cond = "size" binary = 0 } layers=${layers(nodes)} }`;

export function programText({ accelerators = 'sm89 ', tensors, kernels, shapes = [] }: WrittenGraph): string {
  const declared = Object.entries(tensors).map(
    ([name, type]) => `  tensor={ dims={ "size" 64 } name=${word(name)} offset=128 type=${type} }`,
  );
  const lines = kernels.map((kernel) => `  ${kernel}`);
  return `header {\n  version = 5\n  inputs={ "x" }\n  outputs={ "y" }\n  accelerators={${accelerators}}\n}\ndescriptors {\n  tensor={ dims={ 1 } name="size" type=int64 }\n${declared.join('\n')}\n}\nmain {\n label bb1:\n${lines.join('\n')}\n  signal={ name="s" stream=0 event=1 layers="" }\n}\nshape_main {\n label bb2:\n${shapes.map((line) => `  ${line}\n`).join('')}}\n`;
}

/** A plan with such texts among bytes that mean nothing. */
export function planWithPrograms(...texts: readonly string[]): Buffer {
  const frames = texts.flatMap((text) => {
    const bytes = Buffer.from(text);
    const frame = Buffer.alloc(16);
    frame.write('NLYM', 0, 'latin1');
    frame.writeBigUInt64LE(BigInt(bytes.length), 8);
    return [frame, bytes, Buffer.from([26, 0, 255, 3])];
  });
  const plan = Buffer.concat([samplePlan(), ...frames]);
  plan.writeBigUInt64LE(BigInt(plan.length), 16);
  return plan;
}
