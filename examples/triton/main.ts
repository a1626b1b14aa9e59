// Decodes speech features with the three models of a bundle on a Triton server, over its HTTP protocol, as `trtforge triton export --bundle` describes them.
//   TRITON=http://127.0.0.1:8000 node FILE features.f32     (Node 22.18 and newer run TypeScript)
// features.f32: float32, [mel bins, frames].
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

interface Binding {
  readonly name: string;
  readonly dtype: string;
  readonly shape: readonly (number | null)[];
}
interface Model {
  readonly model: string;
  readonly isBatched: boolean;
  readonly isStateful: boolean;
  readonly inputs: readonly Binding[];
  readonly outputs: readonly Binding[];
  /** States that Triton does not keep: the client sends back what came. */
  readonly fed: readonly { readonly input: Binding; readonly output: Binding; readonly initial: number }[];
}
interface Values {
  readonly shape: readonly number[];
  readonly data: readonly number[];
}
/** Of the first chunk, and of every later one. */
interface Frames {
  readonly first: number;
  readonly rest: number;
}
interface Bundle {
  readonly models: readonly [encoder: Model, predictor: Model, joint: Model];
  /** What the meta file of the bundle states of decoding. */
  readonly decoding: {
    readonly labels: readonly string[] | null;
    readonly blankId: number;
    /** Frames that each logit behind those of tokens stands for. */
    readonly durations: readonly number[];
    /** Frames of a chunk, from its begin to that of the next, in front of it, and the fewest that are worth one. */
    readonly streaming: Readonly<Record<'chunk' | 'shift' | 'before' | 'fewest', Frames>> | null;
  };
}

const server = process.env.TRITON ?? 'http://127.0.0.1:8000';
/** Tokens at one step before the decoder moves on in any case. */
const MOST_PER_STEP = 10;

/** The token ids of an utterance, by a greedy transducer; several may be decoded at a time. */
export async function transcribe(
  features: Float32Array,
  { models, decoding }: Bundle,
): Promise<readonly number[]> {
  const [encoder, predictor, joint] = models;
  const signal = the(encoder.inputs.find(isFloat), 'features');
  const [fromEncoder, fromPredictor] = joint.inputs
    .filter(isFloat)
    .toSorted((a, b) => Number(/^enc/i.test(b.name)) - Number(/^enc/i.test(a.name)));
  const rows = signal.shape[1] ?? 0;
  const { durations, blankId: blank } = decoding;
  const id = 1 + Math.floor(Math.random() * 2 ** 31);

  const predict = async (token: number, start: boolean, end = false) => {
    const inputs = predictor.inputs.map((input) =>
      integers(predictor, input, input.shape.length > 1 ? token : 1),
    );
    const outputs = await infer(predictor, new Map(inputs), { id, start, end });
    return the(outputs.get(the(predictor.outputs.find(isFloat), 'prediction').name), 'prediction');
  };
  const chunks = encoder.isStateful
    ? chunksOf(features.length / rows, decoding)
    : [{ from: 0, size: features.length / rows }];
  const fedBack = new Map(encoder.fed.map(({ input, initial }) => integers(encoder, input, initial)));
  const tokens: number[] = [];
  let predicted = await predict(blank, true);
  let [step, emitted] = [0, 0];
  for (const [at, { from, size }] of chunks.entries()) {
    const counts = encoder.inputs
      .filter((input) => !isFloat(input))
      .map((input) => integers(encoder, input, size));
    const own = [signal.name, piece(features, rows, from, size)] as const;
    const inputs = new Map([...counts, ...fedBack, own]);
    const outputs = await infer(encoder, inputs, { id, start: at === 0, end: at === chunks.length - 1 });
    for (const { input, output } of encoder.fed)
      fedBack.set(input.name, the(outputs.get(output.name), output.name));
    const encoded = the(outputs.get(the(encoder.outputs.find(isFloat), 'result').name), 'result');
    const count = encoder.outputs.find(
      (each) => !isFloat(each) && !encoder.fed.some(({ output }) => output.name === each.name),
    );
    const timeAxis = fromEncoder?.shape[1] === null ? 1 : 2;
    const steps = (count && outputs.get(count.name)?.data[0]) ?? encoded.shape[timeAxis] ?? 0;
    while (step < steps) {
      const pair = new Map([
        [the(fromEncoder, 'joint input').name, stepOf(encoded, step, timeAxis)],
        [the(fromPredictor, 'joint input').name, predicted],
      ]);
      const answers = await infer(joint, pair, { id, start: false, end: false });
      const logits = the(answers.get(joint.outputs[0]?.name ?? ''), 'logits').data;
      const tokenLogits = logits.length - durations.length;
      const token = largest(logits.slice(0, tokenLogits));
      const advance = durations[largest(logits.slice(tokenLogits))] ?? (token === blank ? 1 : 0);
      if (token !== blank) {
        tokens.push(token);
        predicted = await predict(token, false);
      }
      emitted++;
      const isLast = emitted >= MOST_PER_STEP;
      const extra = advance === 0 ? token === blank || isLast : isLast && durations.length > 0;
      if (advance > 0 || extra) emitted = 0;
      step += advance + Number(extra);
    }
    step -= steps;
  }
  // Ends the sequence, so that its states are free for another.
  if (predictor.isStateful) await predict(blank, false, true);
  return tokens;
}

/** One request. Triton keeps the states of a model by the sequence's id, from `start` to `end`. */
async function infer(
  { model, isStateful, inputs }: Model,
  values: ReadonlyMap<string, Values>,
  { id, start, end }: { readonly id: number; readonly start: boolean; readonly end: boolean },
): Promise<ReadonlyMap<string, Values>> {
  const named = inputs.map(({ name, dtype }) => {
    // 16-bit floats have no form in JSON: they need the protocol's binary extension.
    if (/float16$/.test(dtype)) throw new Error(`${model}: ${name} is ${dtype}; this client sends JSON.`);
    const datatype = dtype.replace('float', 'FP').toUpperCase();
    const { shape, data } = the(values.get(name), name);
    return { name, datatype, shape, data };
  });
  const parameters = isStateful ? { sequence_id: id, sequence_start: start, sequence_end: end } : {};
  const response = await fetch(`${server}/v2/models/${model}/infer`, {
    method: 'POST',
    body: JSON.stringify({ parameters, inputs: named }),
  });
  const answer = (await response.json()) as {
    error?: string;
    outputs?: readonly (Values & { name: string })[];
  };
  if (!response.ok) throw new Error(`${model}: ${answer.error ?? response.statusText}`);
  return new Map((answer.outputs ?? []).map((output) => [output.name, output]));
}

/** One number, in the shape of a single request: [B] is [1, 1] where Triton batches. */
function integers({ isBatched }: Model, { name, shape }: Binding, value: number): readonly [string, Values] {
  const rank = isBatched && shape.length === 1 ? 2 : shape.length;
  return [name, { shape: Array(rank).fill(1), data: [value] }];
}

/** Pieces of an utterance, as NeMo cuts it; each but the first has frames of the one before in front. */
function chunksOf(frames: number, { streaming }: Bundle['decoding']): { from: number; size: number }[] {
  if (!streaming) throw new Error('The meta file of the bundle does not state the chunks of its encoder.');
  const { chunk, shift, before, fewest } = streaming;
  const found: { from: number; size: number }[] = [];
  let place: keyof Frames = 'first';
  for (let begin = 0; frames - begin >= Math.max(1, fewest[place]); place = 'rest') {
    found.push({ from: begin - before[place], size: before[place] + chunk[place] });
    begin += shift[place];
  }
  return found;
}

/** Frames outside of the utterance are zeros, so that every chunk has the size that the engine was built for. */
function piece(features: Float32Array, rows: number, from: number, size: number): Values {
  const frames = features.length / rows;
  const data = Array.from({ length: rows * size }, (_, at) => {
    const frame = from + (at % size);
    return frame < 0 || frame >= frames ? 0 : (features[Math.floor(at / size) * frames + frame] ?? 0);
  });
  return { shape: [1, rows, size], data };
}

/** Of [1, width, steps], or of [1, steps, width]. */
function stepOf({ shape, data }: Values, step: number, timeAxis: number): Values {
  const [, first = 0, second = 0] = shape;
  if (timeAxis === 1) return { shape: [1, 1, second], data: data.slice(step * second, (step + 1) * second) };
  return {
    shape: [1, first, 1],
    data: Array.from({ length: first }, (_, at) => data[at * second + step] ?? 0),
  };
}

const isFloat = ({ dtype }: Binding): boolean => dtype.includes('float');
const largest = (values: readonly number[]): number => values.indexOf(Math.max(...values));

function the<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new Error(`The bundle has no ${what}.`);
  return value;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const bundle = JSON.parse(readFileSync(new URL('client.json', import.meta.url), 'utf8')) as Bundle;
  const bytes = readFileSync(process.argv[2] ?? 'features.f32');
  const tokens = await transcribe(new Float32Array(new Uint8Array(bytes).buffer), bundle);
  const text = tokens.map((token) => bundle.decoding.labels?.[token] ?? `<${token}>`).join('');
  console.log(text.replaceAll('▁', ' ').trim());
}
