interface Described {
  readonly name: string;
  readonly datatype: string;
  readonly shape: readonly number[];
}

interface Part {
  readonly model: string;
  readonly isStateful: boolean;
  readonly output: string;
}

/** What the client knows of the models it calls. */
export interface ClientFacts {
  readonly encoder: Part & {
    readonly signal: Described;
    readonly length: Described | null;
    /** The output that counts the steps of the result. */
    readonly steps: string | null;
  };
  readonly predictor: Part & { readonly token: Described; readonly counts: readonly Described[] };
  readonly joint: Part & { readonly encoded: Described; readonly predicted: Described };
  /** Of the features: mel bins. */
  readonly rows: number;
  /** Of the encoder's output, `[1, width, steps]` or `[1, steps, width]`. */
  readonly timeAxis: number;
  readonly blank: number;
  readonly durations: readonly number[];
  readonly labels: readonly string[] | null;
  /** Frames of the first chunk and of the others. */
  readonly chunks: {
    readonly size: readonly number[];
    readonly shift: readonly number[];
    readonly before: readonly number[];
  } | null;
}

/** A TypeScript program without dependencies. */
export const clientText = (
  facts: ClientFacts,
): string => `// Decodes speech features with three models of a Triton server, over its HTTP protocol. Written by trtforge triton export.
//   TRITON=http://127.0.0.1:8000 node THIS_FILE features.f32     (Node 22.18 and newer run TypeScript)
// features.f32 has float32 values, [${facts.rows} mel bins, frames].
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

interface Named { readonly name: string; readonly datatype: string; readonly shape: readonly number[] }
interface Sequence { readonly id: number; readonly start: boolean; readonly end: boolean }
interface Output { readonly name: string; readonly shape: readonly number[]; readonly data: readonly number[] }

const bundle: {
  encoder: { model: string; isStateful: boolean; output: string; signal: Named; length: Named | null; steps: string | null };
  predictor: { model: string; isStateful: boolean; output: string; token: Named; counts: readonly Named[] };
  joint: { model: string; isStateful: boolean; output: string; encoded: Named; predicted: Named };
  rows: number; timeAxis: number; blank: number; durations: readonly number[]; labels: readonly string[] | null;
  chunks: { size: readonly number[]; shift: readonly number[]; before: readonly number[] } | null;
} = ${JSON.stringify(facts, null, 2)};
const server = process.env['TRITON'] ?? 'http://127.0.0.1:8000';
/** Tokens at one step before the decoder moves on in any case. */
const MOST_PER_STEP = 10;

/** One request. Triton keeps the states of a model by the sequence's id, from \`start\` to \`end\`. */
async function infer({ model, isStateful }: { model: string; isStateful: boolean }, inputs: readonly (Named & { data: readonly number[] })[], { id, start, end }: Sequence): Promise<(name: string) => Output> {
  const parameters = isStateful ? { sequence_id: id, sequence_start: start, sequence_end: end } : {};
  const response = await fetch(\`\${server}/v2/models/\${model}/infer\`, { method: 'POST', body: JSON.stringify({ parameters, inputs }) });
  const answer = (await response.json()) as { error?: string; outputs?: readonly Output[] };
  if (!response.ok) throw new Error(\`\${model}: \${answer.error ?? response.statusText}\`);
  return (name) => {
    const output = answer.outputs?.find((each) => each.name === name);
    if (output === undefined) throw new Error(\`\${model} answered without \${name}\`);
    return output;
  };
}

/** The token ids of an utterance; several may be decoded at a time. */
export async function transcribe(features: Float32Array): Promise<readonly number[]> {
  const { encoder, predictor, joint, durations, blank, timeAxis } = bundle;
  const id = 1 + Math.floor(Math.random() * 2 ** 31);
  const predict = async (token: number, start: boolean, end = false) => {
    const counts = predictor.counts.map((count) => ({ ...count, data: [1] }));
    const inputs = [{ ...predictor.token, shape: [1, 1], data: [token] }, ...counts];
    return (await infer(predictor, inputs, { id, start, end }))(predictor.output);
  };
  const tokens: number[] = [];
  let predicted = await predict(blank, true);
  let [step, emitted] = [0, 0];
  const chunks = chunksOf(features.length / bundle.rows);
  for (const [at, { from, size }] of chunks.entries()) {
    const signal = { ...encoder.signal, shape: [1, bundle.rows, size], data: piece(features, from, size) };
    const length = encoder.length === null ? [] : [{ ...encoder.length, data: [size] }];
    const answer = await infer(encoder, [signal, ...length], { id, start: at === 0, end: at === chunks.length - 1 });
    const encoded = answer(encoder.output);
    const steps = encoder.steps === null ? (encoded.shape[timeAxis] ?? 0) : (answer(encoder.steps).data[0] ?? 0);
    while (step < steps) {
      const inputs = [{ ...joint.encoded, ...stepOf(encoded, step) }, { ...joint.predicted, shape: predicted.shape, data: predicted.data }];
      const logits = (await infer(joint, inputs, { id, start: false, end: false }))(joint.output).data;
      const token = largest(logits.slice(0, logits.length - durations.length));
      const advance = durations[largest(logits.slice(logits.length - durations.length))] ?? (token === blank ? 1 : 0);
      if (token !== blank) {
        tokens.push(token);
        predicted = await predict(token, false);
      }
      const isLast = ++emitted >= MOST_PER_STEP;
      const extra = advance === 0 ? token === blank || isLast : isLast && durations.length > 0;
      if (advance > 0 || extra) emitted = 0;
      step += advance + Number(extra);
    }
    step -= steps;
  }
  if (predictor.isStateful) await predict(blank, false, true);
  return tokens;
}

/** The text of tokens, where the bundle has labels. */
export const textOf = (tokens: readonly number[]): string =>
  tokens.map((token) => bundle.labels?.[token] ?? \`<\${token}>\`).join('').replaceAll('\\u2581', ' ').trim();

/** Pieces of an utterance; each but the first has frames of the one before in front. */
function chunksOf(frames: number): { from: number; size: number }[] {
  if (bundle.chunks === null) return [{ from: 0, size: frames }];
  const found: { from: number; size: number }[] = [];
  const [size, shift, before] = [bundle.chunks.size, bundle.chunks.shift, bundle.chunks.before];
  for (let [begin, place] = [0, 0]; begin < frames; begin += shift[place] ?? frames, place = 1)
    found.push({ from: begin - (before[place] ?? 0), size: (before[place] ?? 0) + (size[place] ?? frames) });
  return found;
}

/** Frames outside of the utterance are zeros, so that every chunk has the size that the engine was built for. */
const piece = (features: Float32Array, from: number, size: number): number[] => {
  const frames = features.length / bundle.rows;
  return Array.from({ length: bundle.rows * size }, (_, at) => {
    const frame = from + (at % size);
    return frame < 0 || frame >= frames ? 0 : (features[Math.floor(at / size) * frames + frame] ?? 0);
  });
};

function stepOf({ shape, data }: Output, step: number): { shape: number[]; data: number[] } {
  const [, first = 0, second = 0] = shape;
  if (bundle.timeAxis === 1) return { shape: [1, 1, second], data: data.slice(step * second, (step + 1) * second) };
  return { shape: [1, first, 1], data: Array.from({ length: first }, (_, at) => data[at * second + step] ?? 0) };
}

const largest = (values: readonly number[]): number => values.reduce((best, value, at) => (value > (values[best] ?? 0) ? at : best), 0);

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const bytes = readFileSync(process.argv[2] ?? 'features.f32');
  const tokens = await transcribe(new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4));
  console.log(textOf(tokens));
}
`;
