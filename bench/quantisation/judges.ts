import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type BenchContext, load, trtforge } from '../context.js';
import { CommandFailed } from '../measure.js';
import type { Counts } from './paired-bootstrap.js';

/** Figures of a model file by name. */
export interface Judged {
  readonly figures: Readonly<Record<string, number>>;
  /** Of figures that are shares. */
  readonly counts?: Readonly<Record<string, Counts>>;
}

/** Throws CommandFailed. */
export type Judge = (context: BenchContext, file: string) => Promise<Judged>;

/**
 * Codes are simulated, as TensorRT computes them: rounded to a grid between operations of floats. By default ONNX Runtime has INT8 kernels of its own, whose
 * rounding differs.
 */
const simulated = {
  'optimization.disable_specified_optimizers':
    'QDQSelectorActionTransformer;ReluQuantRewrite;ClipQuantRewrite',
};
const simulatedFlags = Object.entries(simulated).flatMap((pair) => ['--provider-option', pair.join('=')]);

/** The first output against that of the FP32 model: signal over error of all samples, cosine of each. Rows of the npz are samples; with an `attention_mask` only its words count. */
export const signalToNoise =
  (original: string, data: string): Judge =>
  async (context, file) => {
    const { readNpz } = await load(context, 'formats/tensor/npz.js');
    const arrays = readNpz(data) as ReadonlyMap<string, Row>;
    const count = [...arrays.values()][0]!.shape[0]!;
    const samples = Array.from({ length: count }, (_, row) => rowOf(arrays, row));
    const [expected, found] = [
      await outputs(context, original, samples),
      await outputs(context, file, samples),
    ];
    let [signal, noise] = [0, 0];
    const cosines = samples.map((sample, at) => {
      let [product, ours, theirs] = [0, 0, 0];
      const counts = counted(sample);
      const width = counts === undefined ? 1 : expected[at]!.length / counts.length;
      expected[at]!.forEach((reference, place) => {
        if (counts !== undefined && counts[Math.floor(place / width)] === 0n) return;
        const value = found[at]![place]!;
        signal += reference ** 2;
        noise += (value - reference) ** 2;
        product += value * reference;
        ours += value ** 2;
        theirs += reference ** 2;
      });
      return product / Math.sqrt(ours * theirs);
    });
    return {
      figures: {
        'SQNR dB': 10 * Math.log10(signal / noise),
        'mean cosine': cosines.reduce((sum, each) => sum + each, 0) / count,
        'least cosine': Math.min(...cosines),
      },
    };
  };

interface Row {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly bytes: Uint8Array;
}
type Sample = ReadonlyMap<string, Row>;

function rowOf(arrays: Sample, row: number): Sample {
  return new Map(
    [...arrays].map(([name, { dtype, shape, bytes }]) => {
      const size = bytes.length / shape[0]!;
      return [
        name,
        { dtype, shape: [1, ...shape.slice(1)], bytes: bytes.slice(row * size, (row + 1) * size) },
      ];
    }),
  );
}

function counted(sample: Sample): BigInt64Array | undefined {
  const mask = sample.get('attention_mask');
  return mask && new BigInt64Array(mask.bytes.buffer, mask.bytes.byteOffset, mask.bytes.length / 8);
}

async function outputs(
  context: BenchContext,
  file: string,
  samples: readonly Sample[],
): Promise<readonly Float32Array[]> {
  const { openOrtSession } = await load(context, 'engines/runtime/onnxruntime/ort-session.js');
  const { float32Values } = await load(context, 'formats/tensor/tensor.js');
  await using session = await openOrtSession(file, { providerOptions: simulated });
  const [{ name }] = session.outputs;
  const values: Float32Array[] = [];
  for (const sample of samples) values.push(float32Values((await session.run(sample)).get(name), name));
  return values;
}

/** `eval detector` over generated scenes. */
export const map =
  (scenes: string): Judge =>
  async (context, file) => {
    const at = (name: string) => join(scenes, name);
    const data = [
      '--instances',
      at('instances.json'),
      '--images',
      at('images'),
      '--labels',
      at('labels.txt'),
    ];
    const { metrics } = evaluated(context, ['detector', file, ...data]);
    return { figures: { mAP: metrics.mAP_50_95, 'mAP 50': metrics.mAP_50 } };
  };

/** `eval recogniser` with this encoder in the bundle, which takes phrases whole: in chunks transcripts are the same, and take three times as long. */
export const wordErrorRate =
  (bundle: string, manifest: string): Judge =>
  async (context, file) => {
    const folder = join(context.folder, 'bundle');
    mkdirSync(folder, { recursive: true });
    try {
      for (const each of readdirSync(bundle)) copyFileSync(join(bundle, each), join(folder, each));
      copyFileSync(file, join(folder, 'encoder.onnx'));
      const data = ['--manifest', manifest, '-o', folder];
      const { wer } = evaluated(context, ['recogniser', join(folder, 'whole.model_meta.json'), ...data]);
      const counts = wordErrors(readFileSync(join(folder, 'scores.tsv'), 'utf8'));
      return { figures: { 'WER %': 100 * wer }, counts: { 'WER %': counts } };
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  };

/** Of each phrase, from the scores.tsv of an evaluation. */
function wordErrors(scores: string): Counts {
  const [head = [], ...rows] = scores.split('\n').map((line) => line.split('\t'));
  const column = (name: string) => rows.slice(0, -1).map((row) => Number(row[head.indexOf(name)]));
  const kinds = ['subs', 'ins', 'dels'].map(column);
  const among = column('ref_words');
  return { errors: among.map((_, at) => kinds.reduce((sum, kind) => sum + kind[at]!, 0)), among };
}

function evaluated(context: BenchContext, parameters: readonly string[]) {
  return answerOf(trtforge(context, 'eval', ...parameters, ...simulatedFlags));
}

function answerOf(argv: readonly string[]) {
  const child = spawnSync(argv[0]!, [...argv.slice(1), '--json', '--quiet'], {
    encoding: 'utf8',
    maxBuffer: 1 << 30,
  });
  if (!child.stdout.startsWith('{')) throw new CommandFailed(child.stderr.trim());
  const answer = JSON.parse(child.stdout);
  if (answer.ok !== true) throw new CommandFailed(`${answer.error?.code}: ${answer.error?.message}`);
  return answer;
}

/** Whether tensorrt-rtx builds it, and in which types its operations run. */
export interface Built {
  /** Why not; null where it does. */
  readonly error: string | null;
  /** `57 convolution int8`: kernels by what they are and the type that they multiply. */
  readonly operations: readonly string[];
}

export async function built(
  context: BenchContext,
  file: string,
  profile: Readonly<Record<string, readonly number[]>>,
): Promise<Built> {
  const plan = join(context.folder, 'quantised.engine');
  const shapes = Object.entries(profile).map(([name, dims]) => `${name}:${dims.join('x')}`);
  const target = ['--precision', 'as-is', '--target', 'tensorrt-rtx:sm_89', '--profile', shapes.join()];
  try {
    answerOf(trtforge(context, 'build', file, ...target, '--no-cache', '-o', plan));
    const { program } = answerOf(trtforge(context, 'engine', 'inspect', plan));
    const { operators } = program as { operators: { operator: string; types: Record<string, number> }[] };
    return {
      error: null,
      operations: operators.flatMap(({ operator, types }) =>
        Object.entries(types).map(([type, count]) => `${count} ${operator} ${type}`),
      ),
    };
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error;
    return { error: error.message, operations: [] };
  }
}
