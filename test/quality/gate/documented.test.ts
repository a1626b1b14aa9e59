import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { longName } from '../../../src/base/options/option.js';
import { catalogue } from '../../../src/errors.js';
import * as library from '../../../src/index.js';
import * as streaming from '../../../src/products/streaming/index.js';
import { parityResultSchema } from '../../../src/products/streaming/verify/result.js';
import { loadPolicy } from '../../../src/quality/gate/policy.js';
import { policyFileSchema } from '../../../src/quality/gate/policy-schema.js';
import { presets } from '../../../src/quality/gate/presets.js';
import { everyVerb } from '../../support/trtforge.js';
import { folderOf } from './gate-case.js';

const pageOf = (name: string) => readFileSync(new URL(`../../../docs/${name}`, import.meta.url), 'utf8');
const page = pageOf('gate.md');
const guide = pageOf('streaming.md');
const blocks = [...page.matchAll(/^```yaml\n(.*?)^```$/gms)].map((match) => match[1] ?? '');
const [policy = ''] = blocks;
const [gitlab = ''] = blocks.filter((block) => block.startsWith('stages:'));
const [, github = ''] = blocks.filter((block) => block.includes('runs-on:'));

interface Step {
  readonly run?: string;
  readonly uses?: string;
}
interface Workflow {
  readonly jobs: Readonly<
    Record<string, { readonly 'runs-on': unknown; readonly needs?: string; readonly steps: readonly Step[] }>
  >;
}
interface Pipeline {
  readonly stages: readonly string[];
  readonly [job: string]: unknown;
}

/** Options that every command has. */
const EVERYWHERE = ['json', 'config'];

const verbs = new Map((await everyVerb()).map(({ path, command }) => [path, command]));

/** Verb and long options of each `trtforge …` in shell text. */
const callsIn = (shell: string) =>
  [...shell.matchAll(/\btrtforge ([a-z]+)( [a-z-]+)?([^|>\n]*)/g)].map(
    ([, first = '', second = '', rest = '']) => ({
      command: verbs.has(first + second) ? first + second : first,
      options: [...`${second}${rest}`.matchAll(/(?<= )--([a-zA-Z-]+)/g)].map((match) => match[1] ?? ''),
    }),
  );

function unknownWords(shell: string): readonly string[] {
  return callsIn(shell).flatMap(({ command, options }) => {
    const found = verbs.get(command);
    if (found === undefined) return [command];
    const known = Object.values(found.options).flatMap((spec) => (spec.configOnly ? [] : [longName(spec)]));
    return options.filter((option) => !EVERYWHERE.includes(option) && !known.includes(option));
  });
}

describe('docs/gate.md', () => {
  it('shows a policy that the gate takes', () => {
    const own = policyFileSchema.parse(parse(policy)).checks?.map(({ id }) => id) ?? [];
    expect(own).toHaveLength(2);
    const { checks } = loadPolicy(join(folderOf({ 'gate.yaml': policy }), 'gate.yaml'));
    expect(checks.map(({ id }) => id)).toEqual(expect.arrayContaining(own));
  });

  it('shows a workflow of jobs with steps', () => {
    const { jobs } = parse(github) as Workflow;
    expect(Object.keys(jobs)).toEqual(['measure', 'gate']);
    for (const { 'runs-on': machine, needs, steps } of Object.values(jobs)) {
      expect(machine).toBeTruthy();
      if (needs !== undefined) expect(jobs).toHaveProperty(needs);
      for (const step of steps) expect('run' in step !== 'uses' in step).toBe(true);
    }
  });

  it('shows a pipeline of jobs with scripts', () => {
    const { stages, ...jobs } = parse(gitlab) as Pipeline;
    for (const job of Object.values(jobs) as {
      readonly stage: string;
      readonly script: readonly string[];
    }[]) {
      expect(stages).toContain(job.stage);
      expect(job.script.every((line) => typeof line === 'string')).toBe(true);
    }
  });

  it('calls only commands and options that exist', () => {
    const steps = Object.values((parse(github) as Workflow).jobs).flatMap(({ steps }) => steps);
    const shell = [page, ...steps.map(({ run = '' }) => run)].join('\n');
    expect(callsIn(shell).map(({ command }) => command)).toEqual(
      expect.arrayContaining(['stream verify', 'bench', 'gate']),
    );
    expect(unknownWords(shell)).toEqual([]);
  });

  it('names every set of ready rules and every check of theirs', () => {
    for (const [name, { checks = [] }] of Object.entries(presets)) {
      expect(page).toContain(`\`${name}\``);
      for (const { id } of checks) expect(page).toContain(`\`${id}\``);
    }
  });
});

describe('docs/streaming.md', () => {
  it('calls only commands and options that exist', () => {
    const fences = [...guide.matchAll(/^ *```\n(.*?)^ *```$/gms)].map((match) => match[1] ?? '').join('\n');
    expect(callsIn(fences).map(({ command }) => command)).toEqual(
      expect.arrayContaining(['stream verify', 'stream record', 'build', 'gate']),
    );
    expect(unknownWords(fences)).toEqual([]);
  });

  it('imports only what the library exports, and names only errors of the catalogue', () => {
    const imported = (door: string) =>
      [...guide.matchAll(/^import \{ (.*?) \} from '([^']+)';$/gm)]
        .filter(([, , from]) => from === door)
        .flatMap(([, names = '']) => names.split(', '));
    expect(imported('trtforge').length + imported('trtforge/streaming').length).toBeGreaterThan(2);
    for (const name of imported('trtforge')) expect(library).toHaveProperty(name);
    for (const name of [...imported('trtforge/streaming'), 'guard', 'openGuardTelemetry'])
      expect(streaming).toHaveProperty(name);
    for (const [code] of guide.matchAll(/\bTF_[A-Z_]+\b/g)) expect(catalogue).toHaveProperty(code);
  });
});

describe('ready rules of streams', () => {
  const fields = ['streaming-parity', 'streaming-acceptance'].flatMap((name) => presets[name]?.checks ?? []);

  it.each(fields.map(({ id, field = '' }) => [id, field]))(
    '%s reads a field that results have: %s',
    (_, field) => {
      expect(schemaAt(parityResultSchema, field)).toBe(true);
    },
  );
});

/** Whether a result of this schema can have something at the path; unwraps what may be null. */
function schemaAt(schema: unknown, path: string): boolean {
  let here = schema as {
    readonly shape?: Readonly<Record<string, unknown>>;
    unwrap?(): unknown;
    readonly element?: unknown;
  };
  for (const [key] of path
    .replaceAll('[*]', '.*')
    .split('.')
    .map((part) => [part] as const)) {
    while (here.shape === undefined && here.element === undefined && here.unwrap !== undefined)
      here = here.unwrap() as typeof here;
    const isLength = key === 'length' && here.element !== undefined;
    const next = key === '*' || isLength ? here.element : here.shape?.[key ?? ''];
    if (next === undefined) return false;
    here = next as typeof here;
  }
  return true;
}
