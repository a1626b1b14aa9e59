import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type BenchContext, load } from '../context.js';
import { CommandFailed } from '../measure.js';
import { type Judge, map, signalToNoise, wordErrorRate } from './judges.js';

/** A model that is quantized, its data, and what is measured of the result. */
export interface Subject {
  readonly title: string;
  /** FP32. */
  readonly model: string;
  /** npz: rows are samples of batch 1. */
  readonly samples: string;
  /** The same of other data; undefined where outputs are not compared. */
  readonly unseen?: string;
  /** A folder of `eval detector`. */
  readonly scenes?: string;
  /** A manifest of `eval recogniser`. */
  readonly phrases?: string;
  /** The shapes it is built for, by input. */
  readonly profile: Readonly<Record<string, readonly number[]>>;
  readonly judges: readonly Judge[];
  /** The judged figures that decide between converters. */
  readonly decides: readonly { readonly figure: string; readonly better: 'higher' | 'lower' }[];
}

const SCENES = 256;
const TEST_SCENES = 500;
const PHRASES = 80;
/** The first 200 are the example's test set; with so few words the order of converters is chance. */
const TEST_PHRASES = 1000;

/** Each prepares its data in `folder`, unless they are there. Throws CommandFailed. */
export const subjects: readonly ((context: BenchContext, folder: string) => Subject | Promise<Subject>)[] = [
  (context, folder) => generated(context, folder, 'ResNet-50 shape', 'resnet50', 'small'),
  (context, folder) => generated(context, folder, 'Encoder of 4 layers', 'transformer-encoder', 'small'),
  (context, folder) => generated(context, folder, 'Encoder of 12 layers', 'transformer-encoder', 'medium'),
  detector,
  recogniser,
];

/** Random weights: how close the outputs are is all that can be judged. */
function generated(
  context: BenchContext,
  folder: string,
  title: string,
  family: string,
  size: string,
): Subject {
  const model = join(folder, `${family}-${size}.onnx`);
  example(context, 'models', [family, '--size', size, '-o', model], model);
  const isText = family === 'transformer-encoder';
  const drawn = (name: string, seed: number) => {
    const path = join(folder, `${family}-${name}.npz`);
    const script = join(context.root, 'bench', 'quantisation', 'samples.py');
    if ('missing' in context.peers) throw new CommandFailed(`${title}: its samples need Python with numpy`);
    const { python } = context.peers;
    if (!existsSync(path)) run([python, script, isText ? 'texts' : 'images', String(seed), '5000', path]);
    return path;
  };
  const unseen = drawn('test', 2);
  return {
    title,
    model,
    samples: drawn('calibration', 1),
    unseen,
    profile: isText ? { input_ids: [1, 64], attention_mask: [1, 64] } : { input: [1, 3, 64, 64] },
    judges: [signalToNoise(model, unseen)],
    decides: [{ figure: 'SQNR dB', better: 'higher' }],
  };
}

type Arrays = ReadonlyMap<string, { dtype: string; shape: readonly number[]; bytes: Uint8Array }>;

async function detector(context: BenchContext, folder: string): Promise<Subject> {
  const scenes = (split: string, count: number) => {
    const at = join(folder, `scenes-${split}`);
    const parameters = ['scenes', '--split', split, '--count', String(count), '-o', at];
    example(context, 'detector', parameters, join(at, 'instances.json'));
    return at;
  };
  const heads = join(folder, 'heads');
  const model = join(heads, 'end_to_end.onnx');
  const trained = join(context.root, 'examples', 'detector', 'detector.onnx');
  example(context, 'detector', ['heads', trained, '-o', heads], model);
  const test = scenes('test', TEST_SCENES);
  const samples = join(folder, 'scenes-calibration.npz');
  if (!existsSync(samples))
    await writeImages(context, join(scenes('train', SCENES), 'images'), model, samples);
  return {
    title: 'Trained detector',
    model,
    samples,
    scenes: test,
    profile: { images: [1, 3, 256, 256] },
    judges: [map(test)],
    decides: [{ figure: 'mAP', better: 'higher' }],
  };
}

/** Images as the evaluation prepares them. */
async function writeImages(context: BenchContext, from: string, model: string, to: string): Promise<void> {
  const { openOrtSession } = await load(context, 'engines/runtime/onnxruntime/ort-session.js');
  const { preparedImages, preprocessingOf } = await load(context, 'engines/run/image-inputs.js');
  const { writeNpz } = await load(context, 'formats/tensor/npz.js');
  await using session = await openOrtSession(model);
  const paths = readdirSync(from)
    .sort()
    .map((file) => join(from, file));
  const rows: Arrays[] = [];
  for await (const { tensor } of preparedImages(
    session.inputs,
    paths,
    preprocessingOf(session.inputs, 'yolo', 256),
  ))
    rows.push(new Map([[session.inputs[0].name, tensor]]));
  writeNpz(to, stacked(rows));
}

async function recogniser(context: BenchContext, folder: string): Promise<Subject> {
  const [test, train] = [join(folder, `speech-test-${TEST_PHRASES}`), join(folder, 'speech-train')];
  const phrases = join(test, 'manifest.tsv');
  example(context, 'recogniser', ['test', '--count', String(TEST_PHRASES), '-o', test], phrases);
  const bundle = join(context.root, 'examples', 'recogniser', 'bundle');
  const model = join(bundle, 'encoder.onnx');
  const [samples, unseen] = [join(folder, 'speech-calibration.npz'), join(folder, 'speech-test.npz')];
  if (!existsSync(samples)) {
    const parameters = ['train', '--count', String(PHRASES), '-o', train];
    example(context, 'recogniser', parameters, join(train, 'manifest.tsv'));
    await recordChunks(context, bundle, train, PHRASES, samples);
  }
  if (!existsSync(unseen)) await recordChunks(context, bundle, test, 20, unseen);
  return {
    title: 'Trained recogniser',
    model,
    samples,
    unseen,
    phrases,
    profile: {
      audio_signal: [1, 80, 41],
      length: [1],
      cache_last_channel: [1, 4, 32, 96],
      cache_last_time: [1, 4, 96, 8],
      cache_last_channel_len: [1],
    },
    judges: [wordErrorRate(bundle, phrases), signalToNoise(model, unseen)],
    decides: [
      { figure: 'WER %', better: 'lower' },
      { figure: 'SQNR dB', better: 'higher' },
    ],
  };
}

/** What the FP32 encoder is fed while phrases stream through it, chunk by chunk with its caches. */
async function recordChunks(
  context: BenchContext,
  bundle: string,
  speech: string,
  phrases: number,
  to: string,
): Promise<void> {
  const { openOrtSession } = await load(context, 'engines/runtime/onnxruntime/ort-session.js');
  const { encode, window, FRAME_AXIS } = await load(context, 'products/bundle/transducer.js');
  const { logMel, nemoFrontEnd } = await load(context, 'formats/audio/log-mel.js');
  const { readAudio } = await load(context, 'formats/audio/read-audio.js');
  const { resample } = await load(context, 'formats/audio/audio.js');
  const { tensorFrom } = await load(context, 'formats/tensor/tensor.js');
  const { writeNpz } = await load(context, 'formats/tensor/npz.js');
  const { streaming, features } = JSON.parse(readFileSync(join(bundle, 'model_meta.json'), 'utf8'));
  const width = streaming.pre_encode_cache_size + streaming.chunk_size;
  const frontEnd = { ...nemoFrontEnd, mels: features.n_mels, normalize: 'none' };
  await using session = await openOrtSession(join(bundle, 'encoder.onnx'));
  const fed: Arrays[] = [];
  const recorded = {
    ...session,
    run: (inputs: Arrays) => {
      fed.push(inputs);
      return session.run(inputs);
    },
  };
  const files = readdirSync(speech).filter((file) => file.endsWith('.wav'));
  for (const file of files.sort().slice(0, phrases)) {
    const audio = resample(await readAudio(join(speech, file)), frontEnd.rate);
    const { values, mels, frames } = logMel(audio.samples, frontEnd);
    const signal = tensorFrom('float32', [1, mels, frames], values);
    let states = new Map();
    for (let begin = 0; begin + streaming.chunk_size <= frames; begin += streaming.shift_size) {
      const chunk = window(signal, FRAME_AXIS, begin - streaming.pre_encode_cache_size, width);
      ({ states } = await encode(recorded, chunk, width, FRAME_AXIS, { states }));
    }
  }
  writeNpz(to, stacked(fed));
}

/** Rows of batch 1, all of one shape, along the first axis. */
function stacked(rows: readonly Arrays[]): Arrays {
  return new Map(
    [...rows[0]!].map(([name, { dtype, shape }]) => {
      const parts = rows.map((row) => row.get(name)!.bytes);
      return [name, { dtype, shape: [rows.length, ...shape.slice(1)], bytes: Buffer.concat(parts) }];
    }),
  );
}

/** Runs one of the examples, unless what it makes is there. */
function example({ root }: BenchContext, which: string, parameters: readonly string[], makes: string): void {
  if (!existsSync(makes))
    run([process.execPath, join(root, 'build', 'examples', which, 'main.js'), ...parameters]);
}

function run([program = '', ...parameters]: readonly string[]): void {
  const child = spawnSync(program, parameters, { encoding: 'utf8' });
  if (child.status !== 0)
    throw new CommandFailed(`${program} ${parameters[0]}: ${child.stderr.trim().split('\n').at(-1)}`);
}
