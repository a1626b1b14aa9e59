import { basename } from 'node:path';
import { canonicalJson, sha256, sha256OfFileInPieces } from '../../../base/files/digest.js';
import { protectingInputs } from '../../../base/files/user-files.js';
import { assertWithin } from '../../../base/options/library-arguments.js';
import { medianOf } from '../../../base/statistics.js';
import { readPassport } from '../../../engines/identity/passport.js';
import { isBatchAxis } from '../../../engines/profiles/profile.js';
import type { OpenedSession, OpenOptions } from '../../../engines/runtime/back-end.js';
import { openSession } from '../../../engines/runtime/open-session.js';
import { TrtforgeError } from '../../../errors.js';
import { inPhase } from '../../../events.js';
import type { Contract } from '../../../formats/contract/contract.js';
import { contractFileOf, readContract } from '../../../formats/contract/file.js';
import type { Provenance } from '../../../formats/reference/reference.js';
import { packageVersion } from '../../../version.js';
import { type KnownModel, type ModelContext, readModelBindings } from '../check/model-bindings.js';
import { contractFromModel } from '../contract/draft.js';
import { type RecordRequest, recordOptions } from './options.js';
import { recordStream } from './record-stream.js';
import type { RecordResult } from './result.js';

/** Records a reference from a model or an engine. Throws what opening, contract, running and writing throw. */
export async function recordReference(
  request: RecordRequest,
  context: ModelContext = {},
): Promise<RecordResult> {
  assertWithin(recordOptions, request);
  return protectingInputs([request.file, request.contract], () => record(request, context));
}

/** Reads model and contract; writes nothing. Throws TF_USAGE where the frames of a chunk are not known, and what reading throws. */
async function decideRecording(request: RecordRequest, context: ModelContext) {
  const { file, threads: asked, ...own } = request;
  const stated = await inPhase('identify', context.emit, () =>
    readModelBindings(file, { ...context, ...own, digest: true }),
  );
  const contract =
    request.contract === undefined
      ? contractFromModel(modelName(file), stated, request.schedule)
      : readContract(request.contract);
  const sizes = request.schedule ?? sizesOf(contract, stated);
  const threads = stated.kind === 'model' ? asked : undefined;
  const open: OpenOptions = { ...own, threads };
  return { stated, contract, sizes, open };
}

async function record(request: RecordRequest, context: ModelContext): Promise<RecordResult> {
  const { file, output } = request;
  const { stated, contract, sizes, open } = await decideRecording(request, context);
  const session = await inPhase('load', context.emit, () => openSession(file, open, context));
  try {
    const provenance = await provenanceOf(request, stated, { session, contract, sizes });
    const recorded = await inPhase('record', context.emit, () =>
      recordStream(session, { ...request, contract, sizes, provenance }, context),
    );
    const { bytes, warnings, violations, stepMs } = recorded;
    const [first = 0, ...rest] = stepMs;
    return {
      schema: 'trtforge.stream-record/1',
      file,
      backend: session.backend,
      contract: request.contract ?? null,
      provenance,
      output,
      chunks: recorded.chunks,
      bytes,
      warnings: [...warnings],
      violations: [...violations],
      stepMs: { first, median: rest.length === 0 ? null : medianOf(rest) },
      repeat: null,
    };
  } finally {
    await session.close();
  }
}

export const modelName = (file: string): string => basename(file).replace(/\.(?:onnx|engine|plan|trt)$/i, '');

/** Sizes of the bins of features, which are no frames. */
const BINS: readonly number[] = [40, 64, 80, 128];

function sizesOf({ schedule, state }: Contract, { inputs }: KnownModel): readonly number[] {
  if (schedule !== null)
    return schedule.first === schedule.rest ? [schedule.first] : [schedule.first, schedule.rest];
  const streamed = inputs.filter(({ name }) => state.every(({ input }) => input !== name));
  const open = streamed.find(({ name, shape }) =>
    shape?.some((size, axis) => axis > 0 && typeof size !== 'number' && !isBatchAxis(inputs, name, axis)),
  );
  const fixed = (streamed[0]?.shape ?? []).slice(1).filter((size) => typeof size === 'number');
  if (open === undefined) return [fixed.findLast((size) => !BINS.includes(size)) ?? fixed.at(-1) ?? 1];
  throw new TrtforgeError('TF_USAGE', `The frames of a chunk are not known: ${open.name} leaves them open.`, {
    remedy:
      'Pass the sizes of the first chunk and of the others (--schedule 41,57), or a contract that has them.',
  });
}

async function provenanceOf(
  request: RecordRequest,
  stated: KnownModel,
  made: { readonly session: OpenedSession; readonly contract: Contract; readonly sizes: readonly number[] },
): Promise<Provenance> {
  const { precision, tf32 } = stated.kind === 'model' ? computesIn(made.session) : precisionOf(stated);
  return {
    tool: 'trtforge',
    version: packageVersion(),
    backend: made.session.backend,
    model: {
      path: basename(request.file),
      digest: stated.digest ?? (await sha256OfFileInPieces(request.file)),
      kind: stated.kind,
    },
    contract: request.contract === undefined ? null : sha256(canonicalJson(contractFileOf(made.contract))),
    seed: request.seed,
    schedule: [...made.sizes],
    batch: request.batch,
    precision,
    tf32,
    recordedAt: new Date().toISOString(),
  };
}

/** ONNX Runtime on the CPU has no TF32; 16-bit values are computed in float32 and rounded. */
const computesIn = ({ arithmetic }: OpenedSession): Pick<Provenance, 'precision' | 'tf32'> => ({
  precision: arithmetic === 'rounded' ? 'float32, rounded to 16 bits' : 'float32',
  tf32: false,
});

/** Known from the passport of the engine only. */
function precisionOf({ path, digest }: KnownModel): Pick<Provenance, 'precision' | 'tf32'> {
  if (digest === null) return { precision: 'unknown', tf32: null };
  const { recipe } = readPassport(path).identity.document;
  return { precision: recipe.precision, tf32: !recipe.flags.includes('no-tf32') };
}
