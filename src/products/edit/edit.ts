import { mkdirSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { removeIfAllowed } from '../../base/files/files.js';
import { makeFolder } from '../../base/files/folders.js';
import { moveInto } from '../../base/files/publish.js';
import { makeScratch } from '../../base/files/scratch.js';
import { assertMayReplace, assertNotInput, protectingInputs } from '../../base/files/user-files.js';
import { throwIfCancelled } from '../../base/process/cancel.js';
import { onnxRuntimePlain } from '../../engines/runtime/open-session.js';
import { ignoreEvents, inPhase } from '../../events.js';
import { assertWellTyped, opsetsOf } from '../../formats/onnx/dtype-inference.js';
import { isExternal } from '../../formats/onnx/external-data.js';
import { visitTensors } from '../../formats/onnx/graph.js';
import { editModel, type OnnxModel } from '../../formats/onnx/model.js';
import { dimensionsText } from '../../formats/onnx/shapes/cost-facts.js';
import { inferShapes } from '../../formats/onnx/shapes/infer.js';
import { interfaceOf } from '../../formats/onnx/value-facts.js';
import { rejectWrappedEngine } from '../../formats/onnx/wrapped-engine.js';
import { type WriteOptions, writeModel } from '../../formats/onnx/write.js';
import { type EditContext, Editing, type Link } from './editing.js';
import { type ProofRequest, prove } from './proof.js';
import type { EditProof, EditResult } from './result.js';
import type { Step } from './steps/steps.js';

export interface EditRequest extends ProofRequest {
  readonly model: string;
  readonly output: string;
  readonly steps: readonly Step[];
  readonly externalData?: WriteOptions['externalData'];
  /** Whether a model that could not be proven is written all the same; what failed is not. */
  readonly unproven?: boolean;
}

/**
 * Applies steps to a model in their order, proves that what is left computes what the original does, and only then writes it. Weights are streamed. Throws
 * TF_EDIT_UNKNOWN, TF_EDIT_IMPOSSIBLE, TF_ONNX_GRAPH_INVALID, TF_CANCELLED, and what opening, running and writing models throw.
 */
export async function editOnnx(request: EditRequest, context: EditContext = {}): Promise<EditResult> {
  return protectingInputs([request.model], () =>
    editModel(request.model, (model) => edited(model, request, context)),
  );
}

async function edited(
  model: OnnxModel,
  request: EditRequest,
  { emit = ignoreEvents, signal, backEnds = [onnxRuntimePlain] }: EditContext,
): Promise<EditResult> {
  const started = performance.now();
  const { model: path, output, steps } = request;
  const { proto } = model;
  assertNotInput(output);
  rejectWrappedEngine(path, proto);
  assertWellTyped(path, proto);
  const before = statesOf(model);
  makeFolder(dirname(output));
  const work = makeScratch('edit', dirname(output));
  try {
    const editing = new Editing(model, work);
    const done: EditResult['steps'] = [];
    for (const step of steps) {
      throwIfCancelled(signal, 'editing the model');
      const did = await inPhase(
        'edit',
        emit,
        async () => step.apply(editing, { emit, signal, backEnds }),
        step.text,
      );
      done.push({ step: step.text, did, promised: step.promise });
    }
    const changed = done.some(({ did }) => did !== null);
    if (changed) completed(editing);
    assertWellTyped(path, proto);
    const promised = done.every(({ did, promised: each }) => did === null || each === 'bits')
      ? 'bits'
      : 'rounding';
    const candidate = join(work, 'edited', basename(output));
    mkdirSync(dirname(candidate));
    const { externalData = 'auto' } = request;
    const isOutside = Array.from(visitTensors(proto)).some(({ tensor }) => isExternal(tensor));
    const mode = externalData === 'auto' && isOutside ? 'always' : externalData;
    const written = await inPhase('write', emit, () =>
      writeModel(model, candidate, { externalData: mode, replacements: editing.streams, signal }, emit),
    );
    const proof: EditProof = changed
      ? await inPhase('prove', emit, () =>
          prove({ original: path, edited: candidate, editing, promised, work }, request, {
            emit,
            signal,
            backEnds,
          }),
        )
      : unchanged(editing);
    const isKept =
      proof.outcome === 'pass' || (proof.outcome === 'inconclusive' && request.unproven === true);
    const data = written.externalData && `${output}.data`;
    if (isKept) publish(candidate, output, written.externalData?.path ?? null);
    const after = statesOf(model);
    return {
      schema: 'trtforge.edit/1',
      input: path,
      output: isKept ? output : null,
      externalData: isKept ? data : null,
      steps: done,
      changed,
      nodes: { before: before.nodes, after: after.nodes },
      bytes: {
        before: bytesOf(model),
        after: isKept ? written.bytes + (written.externalData?.bytes ?? 0) : null,
      },
      opset: { before: before.opset, after: after.opset },
      ir: { before: before.ir, after: after.ir },
      inputs: bindings(interfaceOf(proto).inputs, editing.inputs),
      outputs: bindings(interfaceOf(proto).outputs, editing.outputs),
      proof,
      ms: performance.now() - started,
    };
  } finally {
    removeIfAllowed(work);
  }
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
  unproven: [],
  reasons: [],
});

const statesOf = ({ proto }: OnnxModel) => ({
  nodes: proto.graph!.node.length,
  opset: opsetsOf(proto.opsetImport).get('') ?? 0,
  ir: Number(proto.irVersion),
});

const bytesOf = (model: OnnxModel): number =>
  [...new Set(model.files())].reduce((sum, file) => sum + statSync(file).size, 0);

const bindings = (values: ReturnType<typeof interfaceOf>['inputs'], links: ReadonlyMap<string, Link>) =>
  values.map(({ name, dtype, shape }) => ({
    name,
    dtype,
    shape: shape === null ? null : [...shape],
    was: links.get(name)?.source ?? null,
  }));

/** IR 4 is the first in which weights need not be inputs. */
const WEIGHTS_APART = 4n;

/** What follows from the steps together: sizes of outputs, and that weights are no inputs. */
function completed({ model, graph }: Editing): void {
  const listed = new Set(graph.input.map(({ name }) => name));
  if (model.proto.irVersion < WEIGHTS_APART && graph.initializer.some(({ name }) => !listed.has(name)))
    model.proto.irVersion = WEIGHTS_APART;
  const inferred = new Map(
    [...inferShapes(model).nodes].flatMap(([{ output }, { shapes }]) =>
      output.map((name, index) => [name, dimensionsText(shapes[index])] as const),
    ),
  );
  for (const { name, type } of graph.output) {
    const sizes = inferred.get(name);
    const dims = type?.value.case === 'tensorType' ? (type.value.value.shape?.dim ?? []) : [];
    if (sizes?.length !== dims.length) continue;
    for (const [axis, dim] of dims.entries()) {
      const size = sizes[axis];
      if (dim.value.case !== 'dimValue' && typeof size === 'number')
        dim.value = { case: 'dimValue', value: BigInt(size) };
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
  if (weights !== null) rmSync(to, { force: true });
  for (const [source, target] of pairs) moveInto(source, target);
}
