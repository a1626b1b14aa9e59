import { type Passport, readPassport } from '../../src/engines/identity/passport.js';
import { readPlanHeader } from '../../src/engines/plan/header.js';
import { type ProgramKernel, readPlanProgram } from '../../src/engines/plan/program.js';
import type { BackEnd, OpenedEngine } from '../../src/engines/runtime/back-end.js';
import { openSession } from '../../src/engines/runtime/open-session.js';
import { tensorrt } from '../../src/engines/runtime/tensorrt/back-end.js';
import { dtypes } from '../../src/formats/tensor/dtype.js';
import { float32Values, floatTensor, type NamedTensors } from '../../src/formats/tensor/tensor.js';
import { kernelsOf } from '../../src/products/study/fusions.js';

/** What a fault is read from: a kernel of the compiled program, or the passport. */
export interface Fault {
  readonly kernel?: (kernel: ProgramKernel) => boolean;
  readonly passport?: (passport: Passport) => boolean;
}

export interface FaultyEngines extends BackEnd {
  /** How many engines were run, and how many of them had the fault. */
  readonly ran: { all: number; wrong: number };
}

/**
 * Runs engines without a GPU: each computes what its model computes on ONNX Runtime, by default that of its name beside it, times 1.5 where the plan, which the real
 * library built, has the fault.
 */
export function faultyEngines(
  { kernel, passport }: Fault,
  modelOf = (engine: string) => engine.replace(/\.engine$/, '.onnx'),
): FaultyEngines {
  const ran = { all: 0, wrong: 0 };
  return {
    ...tensorrt,
    name: 'the fault-injecting back end',
    ran,
    open: async (path, { threads }, context): Promise<OpenedEngine> => {
      const program = readPlanProgram(readPlanHeader(path));
      const isWrong =
        (kernel !== undefined && kernelsOf(program).some(kernel)) || passport?.(readPassport(path)) === true;
      ran.all++;
      if (isWrong) ran.wrong++;
      const session = await openSession(modelOf(path), { threads }, context);
      const bindings = (of: typeof session.inputs) =>
        of.map((each) => ({
          ...each,
          shape: (each.shape ?? []).map((size) => (typeof size === 'number' ? size : null)),
          hostValues: false,
          profiles: [],
        }));
      return {
        ...session,
        kind: 'engine',
        backEnd: tensorrt.id,
        inputs: bindings(session.inputs),
        outputs: bindings(session.outputs),
        run: async (tensors, options) => {
          const outputs = await session.run(tensors, options);
          return isWrong ? wrong(outputs) : outputs;
        },
      };
    },
  };
}

const wrong = (outputs: NamedTensors): NamedTensors =>
  new Map(
    [...outputs].map(([name, tensor]) => {
      if (dtypes[tensor.dtype].kind !== 'float') return [name, tensor];
      const values = float32Values(tensor).map((value) => value * 1.5);
      return [name, floatTensor(tensor.dtype as 'float32', tensor.shape, Float32Array.from(values))];
    }),
  );

/** A kernel that computes all of these nodes and stores one result: another that stores a tensor between them as well is compiled otherwise. */
export const spans =
  (...nodes: readonly string[]) =>
  (kernel: ProgramKernel): boolean =>
    kernel.outputs.length === 1 && nodes.every((node) => kernel.nodes.includes(node));

/** The product of a node where it reads 16-bit values, alone or as a part of a kernel. */
export const in16Bits =
  (node: string) =>
  (kernel: ProgramKernel): boolean =>
    [kernel, ...kernel.parts].some(
      ({ kind, nodes, inputs }) =>
        kind === 'fully_connected' && nodes.includes(node) && inputs[0]?.dtype !== 'float32',
    );
