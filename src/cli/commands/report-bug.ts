import { readdirSync, readFileSync, statSync } from 'node:fs';
import { arch, platform, release } from 'node:os';
import { join, relative } from 'node:path';
import { type TarEntry, writeTarGz } from '../../base/archive/tar-writer.js';
import { removeIfAllowed } from '../../base/files/files.js';
import { makeFolder } from '../../base/files/folders.js';
import { makeScratch } from '../../base/files/scratch.js';
import { assertNotInput, kindOf, noteInput } from '../../base/files/user-files.js';
import { throwIfCancelled } from '../../base/process/cancel.js';
import { shellLine } from '../../base/process/shell-quote.js';
import { formatBytes, plural } from '../../base/text/quantity.js';
import { ExitCode, TrtforgeError } from '../../errors.js';
import { inPhase } from '../../events.js';
import { packageVersion } from '../../version.js';
import { type FailingRun, type Line, lineOf, runLine, withoutStores } from '../bug-report/failing-run.js';
import { type PackedInputs, packInputs, withPlaces } from '../bug-report/packed-inputs.js';
import { type Redact, redaction, reportedVariables } from '../bug-report/redact.js';
import type { BugReport } from '../bug-report/result.js';
import { type CommandContext, defineCommand, type TextOutput } from '../command.js';
import { flag, text } from '../option.js';

/** The verb that passes when it has found a failure. */
const SEARCH = 'bisect';

type Report = BugReport & { readonly exitCode: ExitCode };

export const command = defineCommand({
  arguments: [{ name: 'COMMAND', describe: 'the trtforge line that fails, behind --', many: true }],
  examples: [
    'trtforge report-bug -o bug.tar.gz -- build model.onnx --target tensorrt-rtx:sm_89',
    'trtforge report-bug -o bug.tar.gz --with-weights -- verify model.fp16.onnx --against model.onnx',
  ],
  options: {
    output: text({
      flags: '-o, --output <file>',
      describe: 'the archive, .tar.gz',
      writes: ['binary data'],
      required: '-o bug.tar.gz',
    }),
    withWeights: flag({
      flags: '--with-weights',
      describe: 'pack the weights themselves, and engines, instead of seeded random weights',
    }),
  },
  schema: async () => (await import('../bug-report/result.js')).bugReportSchema,
  run: async (words, { output, withWeights }, context): Promise<Report> => {
    const work = makeScratch('report-bug');
    try {
      return await reportOf(await lineOf(words, context), { output, withWeights, work }, context);
    } finally {
      removeIfAllowed(work);
    }
  },
  render,
});

interface Packing {
  readonly output: string;
  readonly withWeights: boolean;
  readonly work: string;
}

async function reportOf(
  line: Line,
  { output, withWeights, work }: Packing,
  context: CommandContext,
): Promise<Report> {
  const { emit, signal, environment } = context;
  const redact = redaction(environment, { [work]: '.', [process.cwd()]: '.' });
  const at = (name: string) => join(work, name);
  for (const folder of ['own', 'seeded', 'report']) makeFolder(at(folder));
  const path = line.verb.path;
  const own = await inPhase('run', emit, () => runLine(line, at('own'), context, environment), path);
  if (own.exitCode === ExitCode.pass && path !== SEARCH)
    throw new TrtforgeError('TF_USAGE', `\`trtforge ${path}\` passes, so there is no failure to report.`, {
      remedy: 'Pass the line that fails, with all of its options.',
    });
  for (const input of own.inputs) noteInput(input);
  assertNotInput(output);
  const packed = await inPhase('pack', emit, () =>
    packInputs(own.inputs, at('report'), { withWeights, redact, signal }),
  );
  // The engine of a run that passes goes into no store of the user.
  const seededLine = withoutStores(withFiles(line, packed, (place) => join(at('report'), place)));
  const ownStore = { ...environment, TENSORRT_CACHE_DIR: at('engines'), ARTIFACTS_BUCKET: '' };
  const seeded =
    withWeights || packed.models === 0
      ? null
      : await inPhase('run with seeded weights', emit, () =>
          runLine(seededLine, at('seeded'), context, ownStore),
        );
  const isReproduced = seeded === null ? null : failureOf(seeded) === failureOf(own);
  const described: Described = {
    version: packageVersion(),
    repeat: redact(
      shellLine(['trtforge', ...path.split(' '), ...withFiles(line, packed, (place) => place).args]),
    ),
    failure: { exitCode: own.exitCode, code: own.error?.code ?? null, message: messageOf(own, redact) },
    weights: packed.models === 0 ? 'none' : withWeights ? 'original' : 'seeded',
    isReproduced,
    seeded: seeded === null ? null : { exitCode: seeded.exitCode, code: seeded.error?.code ?? null },
    leftOut: packed.leftOut.map((each) => ({ path: redact(each.path), why: redact(each.why) })),
  };
  const texts = {
    'README.md': readme(described),
    'environment.json': await environmentText(context),
    'output.json': own.output,
    'progress.txt': own.progress,
    'events.jsonl': own.events,
    ...(seeded === null ? {} : { 'seeded-output.json': seeded.output, 'seeded-events.jsonl': seeded.events }),
  };
  // Made of what is packed alone, outputs have no weights but seeded ones: a reduced model that still fails.
  const isSeededAlone = isReproduced === true && packed.leftOut.length === 0;
  const entries = [
    ...Object.entries(texts).map(([name, content]) => entry(name, redact(content))),
    ...filesIn(at('report')).map(({ name, path: file }) => ({ name, content: { path: file } })),
    ...outputsOf(at('own'), 'outputs', withWeights, redact),
    ...(isSeededAlone ? outputsOf(at('seeded'), 'seeded-outputs', true, redact) : []),
  ];
  const files = entries.map(({ name, content }) => ({
    path: name,
    bytes: content instanceof Uint8Array ? content.length : statSync(content.path).size,
  }));
  const report = { schema: 'trtforge.report-bug/1' as const, ...described, files };
  const all = [...entries, entry('report.json', `${JSON.stringify(report, null, 2)}\n`)];
  const bytes = await writeTarGz(
    output,
    all.map(({ name, content }) => ({ name: `bug-report/${name}`, content })),
  );
  const exitCode = isReproduced === false ? ExitCode.inconclusive : ExitCode.pass;
  return { ...report, archive: output, bytes, exitCode };
}

/** The facts that are known before the archive is written. */
type Described = Omit<BugReport, 'schema' | 'archive' | 'bytes' | 'files'>;

const entry = (name: string, text: string): TarEntry => ({ name, content: Buffer.from(text) });

/** A failure is the same by its code; where a comparison failed, by the exit code. */
const failureOf = ({ exitCode, error }: FailingRun): string => error?.code ?? String(exitCode);

const messageOf = ({ error }: FailingRun, redact: Redact): string | null =>
  error === null ? null : redact(error.message);

/** The line on the packed files. */
const withFiles = (line: Line, { places }: PackedInputs, shown: (place: string) => string): Line => ({
  ...line,
  args: line.args.map((arg) => withPlaces(arg, places, shown)),
});

/** The files that a run wrote before it failed: texts always, others where weights may be packed; never engines, which can be built again. */
function outputsOf(run: string, folder: string, withWeights: boolean, redact: Redact): readonly TarEntry[] {
  return filesIn(join(run, 'outputs')).flatMap(({ name, path }): readonly TarEntry[] => {
    const kind = kindOf(path);
    if (kind === undefined || kind === 'a TensorRT plan') return [];
    if (/text|JSON|XML/.test(kind)) return [entry(`${folder}/${name}`, redact(readFileSync(path, 'utf8')))];
    return withWeights ? [{ name: `${folder}/${name}`, content: { path } }] : [];
  });
}

function filesIn(folder: string): readonly { readonly name: string; readonly path: string }[] {
  if (statSync(folder, { throwIfNoEntry: false }) === undefined) return [];
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((each) => each.isFile())
    .map((each) => join(each.parentPath, each.name))
    .map((path) => ({ name: relative(folder, path), path }));
}

async function environmentText({ environment, signal }: CommandContext): Promise<string> {
  const [{ examine }, { machineProbes }, { thisMachine }] = await Promise.all([
    import('../../quality/doctor/doctor.js'),
    import('../../quality/doctor/doctor-probes.js'),
    import('../../tensorrt/toolchain/find.js'),
  ]);
  const examination = await examine(machineProbes(thisMachine(environment)), signal).catch(
    // The cause of the command's failure may break this too.
    (error: unknown) => ({ gpus: [], error: String(error) }),
  );
  throwIfCancelled(signal, 'examining this machine');
  const { gpus, ...doctor } = examination;
  return JSON.stringify(
    {
      system: { platform: platform(), release: release(), arch: arch(), node: process.version },
      variables: reportedVariables(environment),
      // A UUID names one board.
      doctor: { ...doctor, gpus: gpus.map(({ uuid: _, ...gpu }) => gpu) },
    },
    null,
    2,
  );
}

const readme = ({ repeat, failure, weights, isReproduced, version }: Described): string =>
  [
    '# Report of a failure',
    '',
    `trtforge ${version} ended with ${failure.code ?? `exit code ${failure.exitCode}`}. To repeat, in this folder:`,
    '',
    `    ${repeat}`,
    '',
    ...(weights === 'seeded'
      ? [
          `The weights of the models are random${isReproduced === true ? '; the command fails as with the real ones' : ', and the command does not fail as with the real ones'}.`,
          '',
        ]
      : []),
    'report.json lists the files, and what was left out.',
    '',
  ].join('\n');

function render(result: Report, { line, colors }: TextOutput): void {
  const { failure, weights, seeded } = result;
  line(
    `${colors.bold(result.archive)}  ${formatBytes(result.bytes)}, ${plural(result.files.length, 'file')}`,
  );
  line(`  failure  ${failure.code ?? `exit code ${failure.exitCode}`}`);
  line(`  repeat   ${result.repeat}`);
  line(
    `  weights  ${weights}${result.isReproduced === true ? ', and the command fails in the same way' : ''}`,
  );
  for (const { path, bytes } of result.files) line(colors.dim(`  packed   ${path}  ${formatBytes(bytes)}`));
  for (const { path, why } of result.leftOut)
    line(`  ${colors.yellow('left out')} ${path}  ${colors.dim(why)}`);
  if (result.isReproduced === false)
    line(
      `${colors.yellow('warning')} With seeded weights the command ends with ${seeded?.code ?? `exit code ${seeded?.exitCode}`}: the archive does not reproduce the failure. To send the weights, add --with-weights.`,
    );
  line(colors.dim('Read what is packed before you send it: inputs are the files themselves.'));
}
