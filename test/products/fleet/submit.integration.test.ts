import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import type { Product } from '../../../src/cli/command.js';
import { runProgram } from '../../../src/cli/program/program.js';
import { LocalStore } from '../../../src/engines/store/local.js';
import { fleetSubmitSchema } from '../../../src/products/fleet/submit/result.js';
import { recordedConsole } from '../../fakes/console.js';
import { faultsOfText, judgedProducts } from '../../support/judged-commands.js';
import { isAlive } from '../../support/processes.js';
import { samplePlan as planBytes, sampleIdentity, samplePassport } from '../../support/sample-engine.js';
import type { Answer } from '../../support/trtforge.js';
import { fakePrograms, samplePlan, type Targets } from './sample-plan.js';

const fleet: Product = {
  name: 'fleet',
  verbs: [
    {
      path: 'fleet submit',
      group: 'Products',
      summary: '',
      load: async () => (await import('../../../src/products/fleet/commands/submit.js')).command,
    },
  ],
};

const root = mkdtempSync(join(tmpdir(), 'trtforge-submit-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

let folder = root;
beforeEach(() => {
  folder = mkdtempSync(join(root, 'case-'));
});

const places = {
  l4: { target: 'tensorrt@10.13.3.9:sm_89', where: { slurm: { constraint: 'sm_89' } }, jobs: 2 },
  h100: { target: 'tensorrt@10.13.3.9:sm_90', where: { kubernetes: { image: 'i' } }, jobs: 2 },
  thor: { target: 'tensorrt@10.13.3.9:sm_110', where: { ssh: { host: 'me@thor' } }, jobs: 1 },
} satisfies Targets;

/** Keeps a plan in a store of its own; gives its address. */
function kept(targets: Targets, models = folder): string {
  const store = join(folder, 'store');
  const plan = samplePlan(targets, { store, folder: models });
  mkdirSync(join(store, 'fleet'), { recursive: true });
  writeFileSync(join(store, 'fleet', `${plan.id}.json`), JSON.stringify(plan));
  return join(store, 'fleet', `${plan.id}.json`);
}

/** Keeps the engine of a job in that store. */
async function keepEngine(index: number): Promise<void> {
  const store = new LocalStore(join(folder, 'store'), join(folder, 'memo'));
  const pending = store.pending();
  writeFileSync(pending.planPath, planBytes(index));
  const identity = sampleIdentity(index.toString(16).padStart(64, '0'));
  await store.put(pending.planPath, samplePassport(planBytes(index), identity));
  pending.remove();
}

/** Programs that note what they are given, and answer as schedulers do; others replace them. */
const scripts = () => ({
  squeue: 'exit 0',
  sacct: 'exit 1',
  sbatch: `echo "$*" > '${folder}/sbatch.args'; cat > '${folder}/sbatch.input'; echo 4711`,
  kubectl: `if [ "$1" = get ]; then echo '{}'; else cat > '${folder}/kubectl.input'; echo job.batch/made; fi`,
  ssh: `for word; do echo "$word"; done > '${folder}/ssh.args'; echo built one; exit 4`,
});

async function submit(
  args: readonly string[],
  more: Readonly<Record<string, string>> = {},
  signal = new AbortController().signal,
) {
  const environment = fakePrograms(join(folder, 'bin'), { ...scripts(), ...more });
  const recorded = recordedConsole(environment);
  const faults: string[] = [];
  const program = { name: 'trtforge', version: '0', summary: '', products: judgedProducts([fleet], faults) };
  const exitCode = await runProgram(
    program,
    ['fleet', 'submit', ...args, '--yes', '--json'],
    recorded.console,
    signal,
  );
  expect([...faults, ...faultsOfText(recorded.out())]).toEqual([]);
  const answer: Answer = JSON.parse(recorded.out());
  return { exitCode, answer, err: recorded.err(), result: () => fleetSubmitSchema.parse(answer) };
}

const noted = (name: string) => readFileSync(join(folder, name), 'utf8');
const wasSent = () =>
  readdirSync(folder)
    .filter((name) => /^(?:sbatch|kubectl|ssh)\./.test(name))
    .sort();

describe('every target goes where it is built', () => {
  test('with the name that its scheduler gives', async () => {
    const address = kept(places);
    const { exitCode, result, err } = await submit([address, '--events']);
    const { targets, schedulers } = result();
    expect(targets).toMatchObject([
      { target: 'l4', where: 'slurm', job: '4711', indices: [0, 1], manifest: null, skipped: [] },
      { target: 'h100', where: 'kubernetes', job: 'job.batch/made', indices: [2, 3] },
      { target: 'thor', where: 'ssh', job: null, indices: [4] },
    ]);
    expect(schedulers.map(({ why }) => why)).toEqual([null, null]);
    expect(noted('sbatch.args').trim()).toBe('--parsable');
    expect(noted('sbatch.input')).toContain('#SBATCH --array=0,1\n');
    expect(parse(noted('kubectl.input'))).toMatchObject({ kind: 'Job', spec: { completions: 2 } });
    const [, , , host, line] = noted('ssh.args').split('\n');
    expect(host).toBe('me@thor');
    expect(line).toBe(`cd ${folder} || exit 126; exec trtforge fleet work ${address} --jobs 4`);
    // The work of ssh was undecided.
    expect(exitCode).toBe(4);
    expect(err).toContain('built one');
  });

  test('but not what the store has or a scheduler still has', async () => {
    const address = kept({ ...places, l4: { ...places.l4, jobs: 4 } });
    await keepEngine(1);
    const squeue = "printf '7_2|PENDING||Priority\\n7_3|RUNNING|a|None\\n'";
    const { result } = await submit([address, '--slurm'], { squeue });
    expect(result().targets).toMatchObject([
      {
        target: 'l4',
        indices: [0],
        skipped: [
          { index: 1, why: 'there' },
          { index: 2, why: 'queued' },
          { index: 3, why: 'running' },
        ],
      },
    ]);
    expect(noted('sbatch.input')).toContain('#SBATCH --array=0\n');
  });

  test('and nothing is sent where all is with a scheduler', async () => {
    const { result, exitCode } = await submit([kept(places), '--slurm'], {
      squeue: "echo '7_[0-1]|PENDING||x'",
    });
    expect(result().targets).toMatchObject([{ job: null, indices: [] }]);
    expect({ exitCode, sent: wasSent() }).toEqual({ exitCode: 0, sent: [] });
  });
});

describe('a flag', () => {
  test('of a scheduler leaves the other targets out', async () => {
    const { result } = await submit([kept(places), '--kubernetes']);
    expect(result().targets.map(({ target }) => target)).toEqual(['h100']);
    expect(wasSent()).toEqual(['kubectl.input']);
  });

  test('of a machine takes every target there', async () => {
    const { result } = await submit([kept(places), '--ssh', 'builder']);
    expect(result().targets.map(({ where, indices }) => [where, indices])).toEqual([
      ['ssh', [0, 1]],
      ['ssh', [2, 3]],
      ['ssh', [4]],
    ]);
    expect(wasSent()).toEqual(['ssh.args']);
  });

  test('of this machine works here, and has the exit code of the work', async () => {
    const { result, exitCode, err } = await submit([kept(places), '--local']);
    for (const index of [0, 1, 2, 3]) expect(err).toContain(`m${index}.onnx does not exist`);
    // The sample plan is of x86-64, where that GPU is not.
    expect(err).toMatch(/m4\.engine failed, exit code 2: sm_110 /);
    expect(result().targets.map(({ where }) => where)).toEqual(['local', 'local', 'local']);
    expect(result().targets.map(({ did }) => did)).toEqual(['2 failed', '2 failed', '1 failed']);
    expect(err).toMatch(/2 of 2 .*failed /);
    // Their models are not there.
    expect(exitCode).toBe(2);
    const records = readdirSync(join(folder, 'store', 'fleet', 'records'));
    expect(records.length).toBe(5);
  });

  test.each([
    [['--slurm'], { thor: places.thor }],
    [['--slurm', '--local'], places],
    [['--ssh', '-oProxyCommand=x'], places],
    [['--ssh', 'a b'], places],
  ])('%j is a mistake here', async (flags, targets) => {
    const { answer, exitCode } = await submit([kept(targets as Targets), ...flags]);
    expect(answer.error).toMatchObject({ code: 'TF_USAGE', remedy: expect.stringMatching(/./) });
    expect({ exitCode, sent: wasSent() }).toEqual({ exitCode: 2, sent: [] });
  });
});

test('-o writes what would be sent, and sends nothing', async () => {
  const { result } = await submit([kept(places), '-o', join(folder, 'manifests')]);
  expect(result().targets.map(({ manifest }) => manifest)).toEqual(
    ['l4.sbatch', 'h100.yaml', 'thor.sh'].map((name) => join(folder, 'manifests', name)),
  );
  expect(noted('manifests/l4.sbatch')).toContain('#SBATCH --array=0,1\n');
  expect(noted('manifests/thor.sh')).toContain(' me@thor ');
  expect(wasSent()).toEqual([]);
});

test('-o writes the same each time, asks no scheduler, and warns of a folder that no pod sees', async () => {
  const address = kept(places);
  const busy = { squeue: `echo '1_[0-1]|PENDING||Resources'; echo asked > '${folder}/asked'` };
  const written = async () => {
    const { result, err } = await submit([address, '-o', join(folder, 'twice')], busy);
    expect(result().schedulers).toEqual([]);
    expect(err).toMatch(/warning .*h100/);
    return readFileSync(join(folder, 'twice', 'h100.yaml'), 'utf8');
  };
  const first = await written();
  await new Promise((later) => setTimeout(later, 5));
  expect(await written()).toBe(first);
  expect(existsSync(join(folder, 'asked'))).toBe(false);
});

test('--dry-run lists the targets, and writes and sends nothing', async () => {
  const { answer } = await submit([kept(places), '-o', join(folder, 'manifests'), '--dry-run']);
  expect(answer).toMatchObject({
    schema: 'trtforge.plan/1',
    steps: [{ what: 'l4' }, { what: 'h100' }, { what: 'thor' }],
  });
  expect(existsSync(join(folder, 'manifests'))).toBe(false);
  expect(wasSent()).toEqual([]);
});

describe('by ssh', () => {
  /** As sshd runs a line, in the shell of the user there. */
  const there = 'shift 4; exec sh -c "$1"';
  const onHost = (name: string) => ({ ...places.thor, where: { ssh: { host: name } } });

  test('a folder and an address stay words through both shells', async () => {
    const models = join(folder, `it's "a" $(touch x) #b`);
    mkdirSync(models);
    const address = kept(places, models);
    const trtforge = `printf '%s\\n' "$PWD" "$@" > '${folder}/work'`;
    const { exitCode } = await submit([address, '--ssh', 'builder'], { ssh: there, trtforge });
    expect(noted('work').trim().split('\n')).toEqual([models, 'fleet', 'work', address, '--jobs', '4']);
    expect({ exitCode, inFolder: readdirSync(models) }).toEqual({ exitCode: 0, inFolder: [] });
  });

  test('a folder that is not there is no failure of the work', async () => {
    const { answer } = await submit([kept(places, join(folder, 'gone')), '--ssh', 'builder'], { ssh: there });
    expect(answer.error?.code).toBe('TF_SCHEDULER_FAILED');
  });

  test('hosts work at the same time', async () => {
    const meet = `touch '${folder}/'"$4"; for _ in $(seq 3000); do [ -e '${folder}/a' ] && [ -e '${folder}/b' ] && exit 0; sleep 0.1; done; exit 1`;
    const { exitCode } = await submit([kept({ x: onHost('a'), y: onHost('b') })], { ssh: meet });
    expect(exitCode).toBe(0);
  });

  test('Ctrl-C ends it', async () => {
    const interrupt = new AbortController();
    const done = submit(
      [kept(places), '--ssh', 'a'],
      { ssh: `echo $$ > '${folder}/pid'; sleep 300` },
      interrupt.signal,
    );
    await expect.poll(() => existsSync(join(folder, 'pid')) && noted('pid')).toMatch(/\d\n/);
    interrupt.abort();
    expect((await done).answer.error?.code).toBe('TF_CANCELLED');
    expect(isAlive(Number(noted('pid')))).toBe(false);
  });
});

describe('a scheduler that does not take a job', () => {
  test.each([
    [
      'Slurm',
      '--slurm',
      { sbatch: 'cat > /dev/null; echo invalid partition >&2; exit 1' },
      'invalid partition',
    ],
    [
      'Slurm that reads nothing',
      '--slurm',
      { sbatch: 'echo invalid account >&2; exit 1' },
      'invalid account',
    ],
    ['Kubernetes', '--kubernetes', { kubectl: 'echo forbidden >&2; exit 1' }, 'forbidden'],
    ['ssh', undefined, { ssh: 'echo no route to host >&2; exit 255' }, 'no route to host'],
  ])('%s: its words are in the error', async (_, flag, more, words) => {
    const flags = flag === undefined ? ['--ssh', 'builder'] : [flag];
    const { answer, exitCode } = await submit([kept(places), ...flags], more);
    expect(answer.error).toMatchObject({
      code: 'TF_SCHEDULER_FAILED',
      message: expect.stringContaining(words),
    });
    expect(exitCode).toBe(3);
  });

  test('stops before machines begin to work', async () => {
    const { answer } = await submit([kept(places)], { sbatch: 'exit 1' });
    expect(answer.error?.code).toBe('TF_SCHEDULER_FAILED');
    expect(wasSent()).toEqual([]);
  });

  test('that is not installed is named', async () => {
    const address = kept(places);
    const recorded = recordedConsole({ PATH: join(folder, 'nowhere') });
    const program = { name: 'trtforge', version: '0', summary: '', products: [fleet] };
    const exitCode = await runProgram(
      program,
      ['fleet', 'submit', address, '--slurm', '--yes', '--json'],
      recorded.console,
    );
    expect(JSON.parse(recorded.out()).error).toMatchObject({ code: 'TF_SCHEDULER_FAILED' });
    expect(exitCode).toBe(3);
  });
});
