import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { toBinary } from '@bufbuild/protobuf';
import { z } from 'zod';
import type { IdentityDocument } from '../../../src/engines/identity/identity.js';
import { buildModel, GraphBuilder } from '../../../src/formats/onnx/builder.js';
import { ModelProtoSchema } from '../../../src/formats/onnx/onnx_pb.js';
import { sampleIdentity, samplePlan } from '../../support/sample-engine.js';

const script = fileURLToPath(new URL('./worker.js', import.meta.url));

export interface Task {
  readonly buildMs?: number;
  readonly hang?: boolean;
  readonly fillDisk?: boolean;
  /** When the store becomes read-only during the build. */
  readonly remount?: 'before the plan' | 'after the plan';
  /** Kills itself before the rename of this number, counted from 0. */
  readonly dieAtRename?: number;
  readonly forceRebuild?: boolean;
  readonly output?: string;
  readonly identity?: IdentityDocument;
  readonly store?: string;
  readonly bucket?: {
    readonly address: string;
    readonly leaseTiming: { readonly heartbeatMs: number; readonly expiryMs: number };
  };
  readonly env?: NodeJS.ProcessEnv;
  /** Runs the worker through another program: `['unshare', '-m', 'sh', '-c', …]`; the worker's command line is appended. */
  readonly through?: readonly string[];
}

const answerSchema = z.union([
  z.object({ source: z.string(), engine: z.string(), warnings: z.array(z.string()) }),
  z.object({ code: z.string(), message: z.string() }),
]);
export type Answer = z.infer<typeof answerSchema> | { readonly signal: NodeJS.Signals };

/** A store and the processes that use it. */
export class Scene {
  readonly folder: string;
  readonly store: string;
  readonly #log: string;
  readonly #plan: string;
  readonly #model: string;

  constructor(root: string) {
    this.folder = mkdtempSync(join(root, 'scene-'));
    this.store = join(this.folder, 'engines');
    this.#log = join(this.folder, 'builds.log');
    this.#plan = join(this.folder, 'sample.plan');
    writeFileSync(this.#plan, samplePlan());
    this.#model = join(this.folder, 'model.onnx');
    writeFileSync(this.#model, toBinary(ModelProtoSchema, buildModel(new GraphBuilder('sample')).proto));
    mkdirSync(join(this.folder, 'memo'));
  }

  /** How often a plan was built. */
  builds(): number {
    return existsSync(this.#log) ? readFileSync(this.#log, 'utf8').trim().split('\n').length : 0;
  }

  start(task: Task = {}): { readonly child: ChildProcess; readonly answer: Promise<Answer> } {
    const { through = [], env = {}, ...rest } = task;
    const settings = {
      identity: sampleIdentity(),
      store: this.store,
      ...rest,
      memo: join(this.folder, 'memo'),
      plan: this.#plan,
      model: this.#model,
      log: this.#log,
    };
    const [program = '', ...words] = [...through, process.execPath, script, JSON.stringify(settings)];
    const child = spawn(program, words, {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, ...env },
    });
    let said = '';
    child.stdout.on('data', (chunk) => {
      said += String(chunk);
    });
    const answer = new Promise<Answer>((resolve, reject) => {
      child.on('error', reject);
      child.on('close', (_code, signal) => {
        if (signal !== null) resolve({ signal });
        else resolve(answerSchema.parse(JSON.parse(said.trim().split('\n').at(-1) ?? '')));
      });
    });
    return { child, answer };
  }

  run(task: Task = {}): Promise<Answer> {
    return this.start(task).answer;
  }

  /** A process that is in the middle of its build. */
  startHanging(task: Task = {}): Promise<ReturnType<Scene['start']>> {
    return said('building', this.start({ ...task, hang: true }));
  }

  /** A process that waits for another's build. */
  startWaiting(task: Task = {}): Promise<ReturnType<Scene['start']>> {
    return said('waiting', this.start(task));
  }

  /** Files of the store that no engine owns: unfinished plans, leases, temporary files. */
  leftovers(): readonly string[] {
    if (!existsSync(this.store)) return [];
    return readdirSync(this.store, { recursive: true, encoding: 'utf8' }).filter(
      (path) => path.includes('.unpublished') || path.endsWith('.lease'),
    );
  }
}

/** The process, once it has said a word. */
function said(word: string, started: ReturnType<Scene['start']>): Promise<ReturnType<Scene['start']>> {
  let text = '';
  return new Promise((resolve) =>
    started.child.stdout?.on('data', (chunk) => {
      text += String(chunk);
      if (text.includes(word)) resolve(started);
    }),
  );
}
