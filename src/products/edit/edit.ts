import { mkdirSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { removeIfAllowed } from '../../base/files/files.js';
import { makeFolder, makeScratch } from '../../base/files/folders.js';
import { moveInto, writeFailed } from '../../base/files/publish.js';
import {
  assertMayReplace,
  assertNoFolder,
  assertNotInput,
  protectingInputs,
} from '../../base/files/user-files.js';
import * as is from '../../base/options/kinds.js';
import { allBut, flagOf, needed, type OptionsOf, optional } from '../../base/options/option.js';
import { throwIfCancelled } from '../../base/process/cancel.js';
import { onnxRuntimePlain } from '../../engines/runtime/open-session.js';
import { TrtforgeError } from '../../errors.js';
import { ignoreEvents, inPhase, type WorkContext } from '../../events.js';
import { assertWellTyped, opsetsOf } from '../../formats/onnx/dtype-inference.js';
import { isExternal } from '../../formats/onnx/external-data.js';
import { visitTensors } from '../../formats/onnx/graph.js';
import { editModel, type OnnxModel, rejectWrappedEngine } from '../../formats/onnx/model.js';
import { inferShapes, shapesByName } from '../../formats/onnx/shapes/infer.js';
import { dimensionsText } from '../../formats/onnx/shapes/size.js';
import { dimensionsOf, dimensionValue, interfaceOf } from '../../formats/onnx/values.js';
import { writeModel } from '../../formats/onnx/write.js';
import { convertOptions } from '../../formats/precision/convert.js';
import { judgingOptions } from '../../quality/verify/options.js';
import { type EditContext, Editing, type Link } from './edited-model.js';
import { bytesOf, prove } from './proof.js';
import type { EditProof, EditResult } from './result.js';
import { type EditStep, type Step, stepOf, stepOptions } from './steps/steps.js';

/** An edit, and what both models run on to prove it. */
export const editOptions = {
  /** An ONNX file of any size. */
  model: needed(is.text),
  /** Where the edited model goes, once it is proven. */
  output: needed(is.text),
  /** In their order, each with one option: `{ setDim: { dimension: 'batch', becomes: 1 } }`, `{ fold: true }`. */
  steps: needed(is.list<EditStep>()),
  /** `auto` (default): external where the model's weights are. */
  externalData: convertOptions.externalData,
  /** Whether a model that could not be proven is written all the same; what failed is not. */
  unproven: optional(is.flag, {
    flags: '--unproven',
    group: 'Proof',
    describe: 'write the model also where it cannot be run here (exit code 4); never where it is wrong',
  }),
  ...allBut(judgingOptions, 'atol', 'rtol'),
};

type Declared = OptionsOf<typeof editOptions>;

export interface EditOptions extends Omit<Declared, 'shapes'> {
  /** Sizes of inputs, by name. */
  readonly shapes?: Declared['shapes'] | Readonly<Record<string, readonly number[]>>;
}

/**
 * Edits an ONNX model: steps are applied in their order, what is left is proven to compute what the original does, and only then written. Throws TF_USAGE,
 * TF_EDIT_UNKNOWN, TF_EDIT_IMPOSSIBLE, TF_ONNX_GRAPH_INVALID, TF_CANCELLED, and what opening, running and writing models throw.
 *
 * ```ts
 * const steps = [{ setDim: { dimension: 'batch', becomes: 1 } }, { fold: true }] as const;
 * const edited = await editOnnx({ model: 'resnet50.onnx', output: 'folded.onnx', steps });
 * use([edited.proof.outcome, edited.output]);
 * ```
 */
export async function editOnnx(options: EditOptions, context: WorkContext = {}): Promise<EditResult> {
  // The door has made a Map of an object of shapes.
  const { steps, ...asked } = options as Declared;
  return applySteps({ ...asked, steps: steps.map(stepOf) }, context);
}

interface EditRequest extends Omit<Declared, 'steps'> {
  readonly steps: readonly Step[];
}

/**
 * Applies steps to a model in their order, proves that what is left computes what the original does, and only then writes it. Where rounding that steps change
 * leaves the proof open, they are applied again without that. Weights are streamed. Throws TF_EDIT_UNKNOWN, TF_EDIT_IMPOSSIBLE, TF_ONNX_GRAPH_INVALID, TF_CANCELLED,
 * and what opening, running and writing models throw.
 */
export async function applySteps(request: EditRequest, context: EditContext = {}): Promise<EditResult> {
  const { model: path, output, steps } = request;
  if (steps.length === 0)
    throw new TrtforgeError('TF_USAGE', 'No step is passed: there is nothing to edit.', {
      remedy: `Pass one or more of ${Object.values(stepOptions).map(flagOf).join(', ')}.`,
    });
  assertNoFolder(output, "the model's file", 'model.onnx');
  const attempt = async (isExact: boolean) => {
    makeFolder(dirname(output));
    const work = makeScratch('edit', dirname(output));
    const edit = (model: OnnxModel) => edited(new Editing(model, work, isExact), work, request, context);
    try {
      return await editModel(path, edit);
    } finally {
      removeIfAllowed(work);
    }
  };
  return protectingInputs([path], async () => {
    assertNotInput(output);
    const first = await attempt(false);
    return first.proof.outcome === 'pass' || first.proof.promised === 'bits' ? first : attempt(true);
  });
}

async function edited(
  editing: Editing,
  work: string,
  request: EditRequest,
  { emit = ignoreEvents, signal, backEnds = [onnxRuntimePlain] }: EditContext,
): Promise<EditResult> {
  const started = performance.now();
  const context = { emit, signal, backEnds };
  const { model } = editing;
  const { model: path, output, steps, externalData = 'auto' } = request;
  const { proto } = model;
  rejectWrappedEngine(path, proto);
  assertWellTyped(path, proto);
  const before = statesOf(model);
  const done: EditResult['steps'] = [];
  for (const { text, apply } of steps) {
    throwIfCancelled(signal, 'editing the model');
    const did = await inPhase('edit', emit, async () => apply(editing, context), text);
    done.push({ step: text, did });
  }
  const changed = done.some(({ did }) => did !== null);
  if (changed) completed(editing);
  const candidate = join(work, 'edited', basename(output));
  mkdirSync(dirname(candidate));
  const isOutside = Array.from(visitTensors(proto)).some(({ tensor }) => isExternal(tensor));
  const mode = externalData === 'auto' && isOutside ? 'always' : externalData;
  const options = { externalData: mode, replacements: editing.streams, signal };
  const written = await inPhase('write', emit, () => writeModel(model, candidate, options, emit));
  const proof = changed
    ? await inPhase('prove', emit, () =>
        prove({ original: path, edited: candidate, editing, work }, request, context),
      )
    : unchanged(editing);
  const isOpen = proof.outcome === 'inconclusive' && (editing.isExact || proof.promised === 'bits');
  const isKept = proof.outcome === 'pass' || (isOpen && request.unproven === true);
  const weights = written.externalData;
  if (isKept) publish(candidate, output, weights?.path ?? null);
  const after = statesOf(model);
  const { inputs, outputs } = interfaceOf(proto);
  return {
    schema: 'trtforge.edit/1',
    input: path,
    output: isKept ? output : null,
    externalData: isKept && weights !== null ? `${output}.data` : null,
    steps: done,
    changed,
    nodes: { before: before.nodes, after: after.nodes },
    bytes: { before: bytesOf(model), after: isKept ? written.bytes + (weights?.bytes ?? 0) : null },
    opset: { before: before.opset, after: after.opset },
    ir: { before: before.ir, after: after.ir },
    inputs: bindings(inputs, editing.inputs),
    outputs: bindings(outputs, editing.outputs),
    proof,
    ms: performance.now() - started,
  };
}

/** A step that changes nothing leaves nothing to run. */
const unchanged = ({ outputs }: Editing): EditProof => ({
  outcome: 'pass',
  promised: 'bits',
  found: 'bits',
  samples: 0,
  shapes: [],
  backend: null,
  outputs: [...outputs.keys()].map((name) => ({
    name,
    was: name,
    outcome: 'pass',
    equal: 'bits',
    largestError: 0,
  })),
  opened: [],
  unproven: [],
  reasons: [],
});

const statesOf = ({ proto }: OnnxModel) => ({
  nodes: proto.graph!.node.length,
  opset: opsetsOf(proto.opsetImport).get('') ?? 0,
  ir: Number(proto.irVersion),
});

const bindings = (values: ReturnType<typeof interfaceOf>['inputs'], links: ReadonlyMap<string, Link>) =>
  values.map(({ name, dtype, shape }) => ({
    name,
    dtype,
    shape: shape === null ? null : [...shape],
    was: links.get(name)?.source ?? null,
  }));

/** IR 4 is the first in which weights need not be inputs. */
const WEIGHTS_APART = 4n;

/** What follows from the steps together: sizes of outputs, those that were opened among them, and that weights are no inputs. */
function completed({ model, graph }: Editing): void {
  const listed = new Set(graph.input.map(({ name }) => name));
  if (model.proto.irVersion < WEIGHTS_APART && graph.initializer.some(({ name }) => !listed.has(name)))
    model.proto.irVersion = WEIGHTS_APART;
  const inferred = inferShapes(model);
  const shapes = shapesByName(inferred);
  for (const value of graph.output) {
    const sizes = dimensionsText(shapes.get(value.name));
    const dims = dimensionsOf(value);
    if (sizes?.length !== dims.length) continue;
    for (const [axis, dim] of dims.entries()) {
      const size = sizes[axis];
      const isKnown =
        typeof size === 'number'
          ? dim.value.case !== 'dimValue'
          : dim.value.case !== 'dimParam' && inferred.openSizes.has(size ?? '');
      if (isKnown) dim.value = dimensionValue(size!);
    }
  }
}

/** Moves a proven model to its place, weights first; an older model goes before, so that none stands beside new weights. */
function publish(from: string, to: string, weights: string | null): void {
  const pairs = [...(weights === null ? [] : [[weights, `${to}.data`] as const]), [from, to] as const];
  for (const [source, target] of pairs) {
    assertNotInput(target);
    assertMayReplace(target, source);
  }
  try {
    if (weights !== null) rmSync(to, { force: true });
    for (const [source, target] of pairs) moveInto(source, target);
  } catch (cause) {
    throw writeFailed(to, cause);
  }
}
