import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type BenchCase, type BenchContext, peersOr } from '../context.js';
import { CommandFailed, type CommandRuns, measureCommand } from '../measure.js';
import { type Converter, converters, type Maker } from '../quantisation/converters.js';
import { type Built, built, type Judged } from '../quantisation/judges.js';
import { differenceInterval } from '../quantisation/paired-bootstrap.js';
import { type Subject, subjects } from '../quantisation/subjects.js';
import { costs, type Measurement, type Table } from '../result.js';

/** Every model in every precision, of trtforge and of the peers, from the same samples: size, accuracy, what it is built to, cost of the conversion. */
export const quantisation: BenchCase = {
  name: 'quantisation',
  slow: true,
  run: async (context) => {
    const skipped: string[] = [];
    const onnxRuntime = peersOr(context, skipped)?.python;
    const found = context.modelOpt();
    if ('missing' in found) skipped.push(`ModelOpt: ${found.missing}`);
    const modelOpt = 'python' in found ? found.python : undefined;
    const all = converters(context, { onnxRuntime, modelOpt });
    const folder = join(context.root, 'build', 'bench-quantisation');
    mkdirSync(join(folder, 'models'), { recursive: true });
    const parts = [];
    for (const prepare of subjects) {
      try {
        const subject = await prepare(context, folder);
        const rows = await rowsOf(context, subject, all, folder);
        parts.push({ subject, rows });
        skipped.push(
          ...rows.flatMap(({ name, failed }) => (failed ? [`${subject.title}, ${name}: ${failed}`] : [])),
        );
      } catch (error) {
        if (!(error instanceof CommandFailed)) throw error;
        skipped.push(error.message);
      }
    }
    writeFileSync(join(folder, 'models.json'), JSON.stringify(manifest(parts), null, 1));
    return {
      case: 'quantisation',
      title: 'Quantization, one run of each conversion',
      commands: [
        'trtforge convert MODEL --precision int8 --calibration SAMPLES.npz -o RESULT',
        'python: onnxruntime.quantization.quantize_static(MODEL, RESULT, samples, …)',
        `python -m modelopt.onnx.quantization --onnx_path MODEL --quantize_mode int8 --calibration_data SAMPLES.npz …${modelOpt === undefined ? '' : ` (${versionOf(modelOpt)})`}`,
      ],
      tables: [...parts.map(({ subject, rows }) => tableOf(subject, rows)), barsOf(parts)],
      measurements: parts.flatMap(({ subject, rows }) => conversions(subject, rows)),
      skipped: [
        ...skipped,
        'latency: `npm run bench:gpu -- --only quantisation` measures the models that this run leaves in build/bench-quantisation',
      ],
    };
  },
};

interface Row {
  readonly name: string;
  readonly converter: Converter | undefined;
  readonly failed?: string;
  readonly file?: string;
  readonly bytes?: number;
  readonly figures?: Judged['figures'];
  readonly counts?: Judged['counts'];
  readonly build?: Built;
  readonly cost?: CommandRuns;
}

async function rowsOf(
  context: BenchContext,
  subject: Subject,
  all: readonly Converter[],
  folder: string,
): Promise<Row[]> {
  const rows: Row[] = [
    await judged(context, subject, folder, { name: 'FP32', converter: undefined }, subject.model),
  ];
  const data = `${digestOf(subject.model)} ${digestOf(subject.samples)}`;
  for (const converter of all) {
    const name = `${converter.precision}, ${converter.by} (${converter.how})`;
    process.stderr.write(`  ${subject.title}: ${name}\n`);
    const out = join(
      folder,
      'models',
      `${slug(subject.title)}.${slug(`${converter.by} ${converter.how}`)}.onnx`,
    );
    const convert = () => {
      rmSync(out, { force: true });
      // ModelOpt writes into the file that it is given.
      const model = join(context.folder, 'given.onnx');
      copyFileSync(subject.model, model);
      return measureCommand(converter.command(model, subject.samples, out), { runs: 1, warmups: 0 });
    };
    try {
      // What peers make does not change with this clone.
      const isNew = converter.by === 'trtforge' || !existsSync(out);
      const cost = await kept(folder, `cost of ${name} ${data}`, convert, isNew);
      rows.push(await judged(context, subject, folder, { name, converter, cost }, out));
    } catch (error) {
      if (!(error instanceof CommandFailed)) throw error;
      rows.push({ name, converter, failed: error.message });
    }
  }
  return rows;
}

async function judged(
  context: BenchContext,
  subject: Subject,
  folder: string,
  row: Pick<Row, 'name' | 'converter' | 'cost'>,
  file: string,
): Promise<Row> {
  // Accuracy follows from the file and what it is judged by.
  const { unseen, scenes, phrases } = subject;
  const data = [unseen, scenes && join(scenes, 'instances.json'), phrases, file].filter(
    (each) => each !== undefined,
  );
  const judgement = await kept(folder, `${subject.title} ${data.map(digestOf).join(' ')}`, async () => {
    const found: Judged[] = [];
    for (const judge of subject.judges) found.push(await judge(context, file));
    return {
      figures: Object.assign({}, ...found.map(({ figures }) => figures)),
      counts: Object.assign({}, ...found.map(({ counts }) => counts)),
    } satisfies Judged;
  });
  return {
    ...row,
    file,
    bytes: statSync(file).size,
    ...judgement,
    build: await built(context, file, subject.profile),
  };
}

const digestOf = (file: string): string => createHash('sha256').update(readFileSync(file)).digest('hex');

/** What takes minutes is done once: a value of an earlier run, or a new one, in kept.json. */
async function kept<T>(folder: string, key: string, make: () => T | Promise<T>, isNew = false): Promise<T> {
  const path = join(folder, 'kept.json');
  const known = (): Record<string, T> => (existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : {});
  const before = isNew ? undefined : known()[key];
  if (before !== undefined) return before;
  const made = await make();
  writeFileSync(path, JSON.stringify({ ...known(), [key]: made }, null, 1));
  return made;
}

function tableOf({ title }: Subject, rows: readonly Row[]): Table {
  const names = [...new Set(rows.flatMap(({ figures = {} }) => Object.keys(figures)))];
  return {
    caption: title,
    head: ['', 'bytes', ...names, 'tensorrt-rtx, sm_89', 'kernels', 'processor s', 'MB'],
    rows: rows.map(({ name, failed, bytes, figures = {}, build, cost }) => [
      name,
      bytes?.toLocaleString('en') ?? 'not converted',
      ...names.map((each) => digits(each, figures[each])),
      failed !== undefined ? '' : build?.error === null ? 'builds' : 'does not build',
      build?.operations.join(', ') ?? '',
      cost?.median.cpuSeconds?.toFixed(1) ?? '',
      cost?.median.peakBytes == null ? '' : (cost.median.peakBytes / 1e6).toFixed(0),
    ]),
  };
}

const digits = (figure: string, value: number | undefined): string => {
  if (value === undefined) return '';
  return Number.isFinite(value) ? value.toFixed(/dB|%/.test(figure) ? 2 : 4) : 'equal';
};

interface Part {
  readonly subject: Subject;
  readonly rows: readonly Row[];
}

/** What a machine with a GPU needs to measure the same models. */
const manifest = (parts: readonly Part[]) =>
  parts.map(({ subject: { title, model, samples, unseen, scenes, profile }, rows }) => ({
    ...{ title, model, samples, unseen, scenes, profile },
    rows: rows.flatMap(({ name, file }) => (file === undefined ? [] : [{ name, file }])),
  }));

const slug = (text: string): string => text.toLowerCase().replace(/[^a-z0-9]+/g, '-');

/** Ours against the best of the peers. */
function barsOf(parts: readonly Part[]): Table {
  const bars = parts.flatMap(({ subject: { title, decides }, rows }) =>
    decides.flatMap((each) =>
      (['INT8', 'FP8'] as const).map((precision) => ({ title, rows, precision, ...each })),
    ),
  );
  const rows = bars.flatMap(({ title, rows, precision, figure, better }) => {
    const sign = better === 'higher' ? 1 : -1;
    const [own, peer] = [true, false].map(
      (ours) =>
        rows
          .flatMap(({ converter, figures, counts }) => {
            const value = figures?.[figure];
            return converter?.precision === precision &&
              (converter.by === 'trtforge') === ours &&
              value !== undefined
              ? [{ converter, value, counts: counts?.[figure] }]
              : [];
          })
          .sort((a, b) => sign * (b.value - a.value))[0],
    );
    if (own === undefined || peer === undefined) return [];
    const beside = `${digits(figure, peer.value)} (${nameOf(peer.converter)})`;
    const interval =
      own.counts && peer.counts && differenceInterval(own.counts, peer.counts).map((each) => 100 * each);
    const difference = interval?.map((each) => each.toFixed(2)).join(' to ') ?? '';
    const isWorse = (each: number) => sign * each < 0;
    const holds = !isWorse(own.value - peer.value)
      ? 'yes'
      : (interval?.every(isWorse) ?? true)
        ? 'no'
        : 'no difference shown';
    return [[`${title}, ${precision}`, figure, digits(figure, own.value), beside, difference, holds]];
  });
  const head = ['', '', 'trtforge', 'best peer', 'difference, 95 %', 'no worse'];
  return { caption: 'No worse than the best peer', head, rows };
}

const nameOf = ({ by, how }: Converter): string => `${by} ${how}`;

/** What our conversions cost beside those of the peers. */
function conversions({ title }: Subject, rows: readonly Row[]): Measurement[] {
  const row = (by: Maker, precision: string) =>
    rows.find((each) => each.converter?.by === by && each.converter.precision === precision);
  return (['INT8', 'FP8'] as const).flatMap((precision) => {
    const own = row('trtforge', precision)?.cost;
    if (own === undefined) return [];
    return (['ModelOpt', 'ONNX Runtime'] as const).flatMap((by) => {
      const peer = row(by, precision);
      if (peer?.cost === undefined || peer.converter === undefined) return [];
      const lines = costs(
        `${title} to ${precision}`,
        own,
        { name: nameOf(peer.converter), runs: peer.cost },
        {},
      );
      // The peer's run may be an earlier one, on a machine with other work: wall times do not compare.
      return lines.filter(({ what }) => !what.endsWith('wall time'));
    });
  });
}

function versionOf(python: string): string {
  const script =
    'import importlib.metadata; print("nvidia-modelopt", importlib.metadata.version("nvidia-modelopt"))';
  return spawnSync(python, ['-c', script], { encoding: 'utf8' }).stdout.trim();
}
