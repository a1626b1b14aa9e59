import { readFileSync, statSync } from 'node:fs';
import { arch, platform, release } from 'node:os';
import { join } from 'node:path';
import { type TarEntry, writeTarGz } from '../../base/archive/tar-writer.js';
import { removeIfAllowed } from '../../base/files/files.js';
import { makeFolder, makeScratch } from '../../base/files/folders.js';
import { assertNotInput, noteInput } from '../../base/files/user-files.js';
import { throwIfCancelled } from '../../base/process/cancel.js';
import { formatBytes, plural } from '../../base/text/quantity.js';
import { ExitCode, TrtforgeError } from '../../errors.js';
import { inPhase } from '../../events.js';
import { viewModel } from '../../formats/onnx/model.js';
import { seedingOf } from '../../formats/onnx/seeded-weights.js';
import { CAPTURE_FILE } from '../../tensorrt/toolchain/environment.js';
import { packageVersion } from '../../version.js';
import { type CommandContext, defineCommand, type TextOutput } from '../command.js';
import { flag, text } from '../option.js';
import { type FailingRun, type Line, lineOf, runLine } from './bug-report/failing-run.js';
import { type PackedInputs, packInputs } from './bug-report/packed-inputs.js';
import { type Redact, redaction, reportedVariables } from './bug-report/redaction.js';
import type { BugReport } from './bug-report/result.js';
import {
  asEntry,
  entry,
  filesIn,
  type NamedFile,
  outputsOf,
  type Packing,
  SEARCH,
  type Seeding,
  seededRun,
} from './bug-report/seeded-run.js';

type Report = BugReport & { readonly exitCode: ExitCode };

export const command = defineCommand({
  arguments: [{ name: 'COMMAND', describe: 'the trtforge line that fails, behind --', many: true }],
  examples: [
    'trtforge report-bug -o bug.tar.gz -- build model.onnx --target tensorrt-rtx:sm_89',
    'trtforge report-bug -o bug.tar.gz --reduced --capture-api -- build model.onnx --batch 1/8/32',
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
    reduced: flag({
      flags: '--reduced',
      describe: 'pack the smallest part found that still fails with seeded weights, instead of whole models',
    }),
    captureApi: flag({
      flags: '--capture-api',
      describe: "pack NVIDIA's capture of the calls of TensorRT's API too (libtensorrt_shim.so)",
    }),
  },
  schema: async () => (await import('./bug-report/result.js')).bugReportSchema,
  run: async (words, { output, ...asked }, context): Promise<Report> => {
    if (asked.reduced && asked.withWeights)
      throw new TrtforgeError(
        'TF_USAGE',
        '--reduced packs seeded weights, and --with-weights the own ones.',
        {
          remedy: 'Remove one of them.',
        },
      );
    const work = makeScratch('report-bug');
    try {
      return await reportOf(await lineOf(words, context), { output, ...asked, work }, context);
    } finally {
      removeIfAllowed(work);
    }
  },
  render,
});

async function reportOf(
  line: Line,
  { output, ...packing }: Packing & { readonly output: string },
  context: CommandContext,
): Promise<Report> {
  const { withWeights, work } = packing;
  const { emit, signal, environment } = context;
  const redact = redaction(environment, { [work]: '.', [process.cwd()]: '.' });
  for (const folder of ['own', 'report', CAPTURE]) makeFolder(join(work, folder));
  const own = await userRun(line, join(work, 'own'), context);
  for (const input of own.inputs) noteInput(input);
  assertNotInput(output);
  const packed = await inPhase('pack', emit, () =>
    packInputs(own.inputs, join(work, 'report'), { withWeights, redact, signal }),
  );
  const seeding = await seededRun({ line, own, packed, packing }, context);
  const { seeded, isReproduced, reduced } = seeding;
  const models = withWeights ? [] : seeding.models.map(seededModel);
  const captured = packing.captureApi
    ? await inPhase('run with a capture', emit, () => capturedRun(seeding, work))
    : null;
  const recorded = filesIn(join(work, CAPTURE), CAPTURE);
  const described: Described = {
    version: packageVersion(),
    repeat: redact(seeding.repeat),
    failure: { exitCode: own.exitCode, code: own.error?.code ?? null, message: messageOf(own, redact) },
    weights: weightsOf(packed, withWeights),
    isReproduced,
    seeded: seeded === null ? null : { exitCode: seeded.exitCode, code: seeded.error?.code ?? null },
    models,
    reduced,
    capture: captured && captureOf(captured, recorded, redact),
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
  const isSeededAlone = isReproduced === true && packed.leftOut.length === 0 && reduced === null;
  const entries = [
    ...Object.entries(texts).map(([name, content]) => entry(name, redact(content))),
    ...seeding.files.map(asEntry),
    ...(isSeededAlone ? outputsOf(join(work, 'seeded'), 'seeded-outputs', true, redact) : []),
    ...outputsOf(join(work, 'own'), 'outputs', withWeights, redact),
    ...recorded.map((file) => recordedEntry(file, redact)),
  ];
  const report = { schema: 'trtforge.report-bug/1' as const, ...described, files: entries.map(packedFile) };
  const bytes = await writeArchive(output, [
    ...entries,
    entry('report.json', `${JSON.stringify(report, null, 2)}\n`),
  ]);
  const lacks = reduced?.nodes === null || report.capture?.files.length === 0;
  const exitCode = isReproduced === false || lacks ? ExitCode.inconclusive : ExitCode.pass;
  return { ...report, archive: output, bytes, exitCode };
}

/** The run of the line on the user's files. Throws TF_USAGE where it passes. */
async function userRun(line: Line, folder: string, context: CommandContext): Promise<FailingRun> {
  const { path } = line.verb;
  const ended = await inPhase(
    'run',
    context.emit,
    () => runLine(line, folder, context, context.environment),
    path,
  );
  if (ended.exitCode === ExitCode.pass && path !== SEARCH)
    throw new TrtforgeError('TF_USAGE', `\`trtforge ${path}\` passes, so there is no failure to report.`, {
      remedy: 'Pass the line that fails, with all of its options.',
    });
  return ended;
}

const capturedRun = ({ run }: Seeding, work: string): Promise<FailingRun> =>
  run('captured', {
    TENSORRT_CACHE_DIR: join(work, 'captured-engines'),
    [CAPTURE_FILE]: join(work, CAPTURE, 'capture.json'),
  });

function captureOf(
  captured: FailingRun,
  recorded: readonly NamedFile[],
  redact: Redact,
): BugReport['capture'] {
  const files = recorded.map(({ name }) => name);
  if (files.length > 0) return { files, why: null };
  const isLoaded = captured.error?.code !== 'TF_LIBRARY_LOAD_FAILED';
  const why = isLoaded ? 'The line built no engine by the library itself.' : messageOf(captured, redact);
  return { files, why };
}

const recordedEntry = ({ name, path }: NamedFile, redact: Redact): TarEntry =>
  name.endsWith('.json') ? entry(name, redact(readFileSync(path, 'utf8'))) : asEntry({ name, path });

function weightsOf({ models }: PackedInputs, withWeights: boolean): BugReport['weights'] {
  if (models.length === 0) return 'none';
  return withWeights ? 'original' : 'seeded';
}

const seededModel = ({ name, path }: NamedFile): BugReport['models'][number] => ({
  path: name,
  ...viewModel(path, (model) => ({ nodes: model.proto.graph!.node.length, ...seedingOf(model) })),
});

const packedFile = ({ name, content }: TarEntry): BugReport['files'][number] => ({
  path: name,
  bytes: content instanceof Uint8Array ? content.length : statSync(content.path).size,
});

/** Writes the archive; returns its size in bytes. */
const writeArchive = (path: string, entries: readonly TarEntry[]): Promise<number> =>
  writeTarGz(
    path,
    entries.map(({ name, content }) => ({ name: `bug-report/${name}`, content })),
  );

/** The folder of a capture, in the archive too. */
const CAPTURE = 'api-capture';

/** The facts that are known before the archive is written. */
type Described = Omit<BugReport, 'schema' | 'archive' | 'bytes' | 'files'>;

const messageOf = ({ error }: FailingRun, redact: Redact): string | null =>
  error === null ? null : redact(error.message);

async function environmentText({ environment, signal }: CommandContext): Promise<string> {
  const [{ examine }, { machineProbes }, { thisMachine }] = await Promise.all([
    import('../../quality/doctor/doctor.js'),
    import('../../quality/doctor/doctor.js'),
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

const readme = ({ repeat, failure, weights, isReproduced, reduced, version }: Described): string =>
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
    ...(reduced?.nodes
      ? [`The model is a part of ${reduced.nodes} of ${plural(reduced.of, 'node')}.`, '']
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
  for (const { path, nodes, replaced, kept } of result.models)
    line(
      `  model    ${path}  ${plural(nodes, 'node')}, ${plural(replaced, 'weight')} random${kept.length === 0 ? '' : `, ${kept.length} kept`}`,
    );
  if (result.reduced?.nodes)
    line(`  reduced  to ${result.reduced.nodes} of ${plural(result.reduced.of, 'node')}`);
  for (const { path, bytes } of result.files) line(colors.dim(`  packed   ${path}  ${formatBytes(bytes)}`));
  for (const { path, why } of result.leftOut)
    line(`  ${colors.yellow('left out')} ${path}  ${colors.dim(why)}`);
  if (result.isReproduced === false)
    line(
      `${colors.yellow('warning')} With seeded weights the command ends with ${seeded?.code ?? `exit code ${seeded?.exitCode}`}: the archive does not reproduce the failure. To send the weights, add --with-weights.`,
    );
  if (result.reduced?.why)
    line(`${colors.yellow('warning')} ${result.reduced.why} The models are packed whole.`);
  if (result.capture?.why) line(`${colors.yellow('warning')} No API capture: ${result.capture.why}`);
  line(
    colors.dim(
      'Read what is packed before you send it: inputs are the files themselves, and names are yours.',
    ),
  );
}
