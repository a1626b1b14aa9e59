import { z } from 'zod';
import { parseJson } from '../../../base/files/json.js';
import { cancelled } from '../../../base/process/cancel.js';
import { faultText } from '../../../base/text/schema-error.js';
import { TrtforgeError } from '../../../errors.js';
import { readProtobufJson } from '../../../formats/serving/protobuf-text.js';
import { elementCount, packedBytes } from '../../../formats/tensor/dtype.js';
import type { NamedTensors, Tensor } from '../../../formats/tensor/tensor.js';
import { dataTypes, dtypeOf, type ModelConfig } from '../model-config.js';

/** Of a request that belongs to a sequence. */
export interface SequencePart {
  readonly id: number;
  readonly start: boolean;
  readonly end: boolean;
}

/** Of what a server answers: configurations, lists and errors are JSON; tensors are as large as the inputs of a known answer may be. */
const LARGEST_JSON = 4 << 20;
const LARGEST_TENSORS = 2 ** 30;

/** A server that loads engines answers late, but it does. */
const LIVE_MS = 2000;

interface Answer {
  readonly ok: boolean;
  readonly headers: Headers;
  readonly content: Buffer;
}

/**
 * A server that speaks the V2 protocol over HTTP. Tensors travel in its binary form. Throws TF_TRITON_UNAVAILABLE where nobody answers, or with
 * more than is read, and TF_CANCELLED.
 * https://github.com/kserve/kserve/blob/master/docs/predict-api/v2/required_api.md,
 * https://github.com/triton-inference-server/server/blob/main/docs/protocol/extension_binary_data.md
 */
export class TritonClient {
  readonly #url: string;
  readonly #signal: AbortSignal | undefined;

  constructor(url: string, signal?: AbortSignal) {
    this.#url = url.replace(/\/+$/, '');
    this.#signal = signal;
  }

  async isLive(): Promise<boolean> {
    try {
      return (await this.#ask('/v2/health/live', { signal: AbortSignal.timeout(LIVE_MS) })).ok;
    } catch (error) {
      if (error instanceof TrtforgeError && error.code === 'TF_TRITON_UNAVAILABLE') return false;
      throw error;
    }
  }

  async serverVersion(): Promise<string> {
    const { name, version } = (await this.#json('/v2')) as Readonly<Record<string, unknown>>;
    return `${name ?? 'unknown'} ${version ?? ''}`.trim();
  }

  /** null: it is ready; else why it is not, empty where the server keeps that for its log. */
  async whyNotReady(model: string): Promise<string | null> {
    if ((await this.#ask(`${pathOf(model)}/ready`)).ok) return null;
    const listed = indexSchema.safeParse(
      await this.#json('/v2/repository/index', { method: 'POST', body: '{}' }),
    );
    const own = listed.data?.find(({ name }) => name === model);
    return own === undefined ? 'the server has no such model' : own.reason;
  }

  async config(model: string): Promise<ModelConfig> {
    const path = `${pathOf(model)}/config`;
    return readProtobufJson('inference.ModelConfig', await this.#json(path), `${this.#url}${path}`);
  }

  /** Throws TF_RUN_FAILED with the server's own words where it refuses. */
  async infer(model: string, inputs: NamedTensors, sequence?: SequencePart): Promise<NamedTensors> {
    const header = JSON.stringify({
      inputs: [...inputs].map(([name, { dtype, shape, bytes }]) => ({
        name,
        datatype: dataTypes[dtype]?.replace('TYPE_', ''),
        shape,
        parameters: { binary_data_size: bytes.length },
      })),
      parameters: {
        binary_data_output: true,
        ...(sequence && {
          sequence_id: sequence.id,
          sequence_start: sequence.start,
          sequence_end: sequence.end,
        }),
      },
    });
    const parts = [Buffer.from(header), ...[...inputs.values()].map(({ bytes }) => bytes)];
    const { ok, headers, content } = await this.#ask(
      `${pathOf(model)}/infer`,
      {
        method: 'POST',
        headers: { 'Inference-Header-Content-Length': String(Buffer.byteLength(header)) },
        body: Buffer.concat(parts),
      },
      LARGEST_TENSORS,
    );
    if (!ok)
      throw new TrtforgeError('TF_RUN_FAILED', `${model} was refused by the server: ${wordsOf(content)}`);
    return outputsOf(
      model,
      content,
      Number(headers.get('Inference-Header-Content-Length') ?? content.length),
    );
  }

  async #json(path: string, init?: RequestInit): Promise<unknown> {
    const { ok, content } = await this.#ask(path, init);
    const json = jsonOf(content);
    if (ok && json !== undefined) return json;
    throw new TrtforgeError('TF_TRITON_UNAVAILABLE', `${this.#url}${path} answers: ${wordsOf(content)}`);
  }

  async #ask(path: string, init: RequestInit = {}, largest = LARGEST_JSON): Promise<Answer> {
    const signals = [this.#signal, init.signal].filter((signal) => signal instanceof AbortSignal);
    try {
      const response = await fetch(`${this.#url}${path}`, { ...init, signal: AbortSignal.any(signals) });
      const parts: Uint8Array[] = [];
      let bytes = 0;
      const announced = Number(response.headers.get('content-length'));
      for await (const part of response.body ?? []) {
        bytes += part.length;
        if (Math.max(bytes, announced) > largest) throw new Error(`${path} has more than ${largest} bytes`);
        parts.push(part);
      }
      return { ok: response.ok, headers: response.headers, content: Buffer.concat(parts) };
    } catch (cause) {
      if (this.#signal?.aborted) throw cancelled({ doing: 'trying a repository', signal: this.#signal });
      const why =
        cause instanceof Error
          ? ((cause.cause as Error | undefined)?.message ?? cause.message)
          : String(cause);
      throw new TrtforgeError('TF_TRITON_UNAVAILABLE', `${this.#url} has no usable answer: ${why}.`, {
        remedy: 'Check the address and that the server is ready.',
        cause,
      });
    }
  }
}

const pathOf = (model: string): string => `/v2/models/${encodeURIComponent(model)}`;

/** Undefined for what is not JSON. */
function jsonOf(content: Buffer): unknown {
  try {
    return content.length > LARGEST_JSON ? undefined : parseJson(content.toString(), LARGEST_JSON, Error);
  } catch {
    return undefined;
  }
}

/** `{"error": "…"}`, or whatever there is. */
function wordsOf(content: Buffer): string {
  const { error } = (jsonOf(content) ?? {}) as { readonly error?: unknown };
  return typeof error === 'string' ? error : content.toString('utf8', 0, 500);
}

const indexSchema = z.array(z.object({ name: z.string(), reason: z.string().default('') }));

const answerSchema = z.object({
  outputs: z
    .array(z.object({ name: z.string(), datatype: z.string(), shape: z.array(z.int().nonnegative()) }))
    .default([]),
});

/** The tensors of an answer: a header of JSON, and then their bytes. Throws TF_RUN_FAILED for anything else. */
export function outputsOf(model: string, content: Buffer, headerBytes: number): NamedTensors {
  const answer = answerSchema.safeParse(jsonOf(content.subarray(0, headerBytes)));
  if (!answer.success)
    throw new TrtforgeError(
      'TF_RUN_FAILED',
      `${model} gives something else than tensors: ${faultText(answer.error)}.`,
    );
  let at = headerBytes;
  return new Map(
    answer.data.outputs.map(({ name, datatype, shape }): [string, Tensor] => {
      const dtype = dtypeOf(`TYPE_${datatype}`);
      const size = dtype === undefined ? -1 : packedBytes(dtype, elementCount(shape));
      const bytes = content.subarray(at, at + size);
      if (dtype === undefined || bytes.length !== size)
        throw new TrtforgeError(
          'TF_RUN_FAILED',
          `${model} gives ${name} as ${datatype}, of ${bytes.length} bytes.`,
        );
      at += size;
      return [name, { dtype, shape, bytes }];
    }),
  );
}
