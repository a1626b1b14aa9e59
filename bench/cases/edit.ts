import { spawnSync } from 'node:child_process';
import { existsSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { type BenchCase, type BenchContext, generate, peersOr, trtforge } from '../context.js';
import { type CommandRuns, measureCommands } from '../measure.js';
import type { Peers } from '../peers.js';
import type { Measurement, Table } from '../result.js';

/** Each takes minutes on large files. */
const MOST_RUNS = 2;

/** What `edit --fold` does without its proof, which no option leaves out. */
const UNPROVEN = `
import { mkdirSync } from 'node:fs';
const [, root, path, output] = process.argv;
mkdirSync(output + '-work', { recursive: true });
const load = (file) => import(new URL('dist/' + file, 'file://' + root));
const { editModel } = await load('formats/onnx/model.js');
const { writeModel } = await load('formats/onnx/write.js');
const { onnxRuntimePlain } = await load('engines/runtime/open-session.js');
const { Editing } = await load('products/edit/edited-model.js');
const { fold } = await load('products/edit/fold/fold.js');
await editModel(path, async (model) => {
  const editing = new Editing(model, output + '-work');
  await fold(editing, { backEnds: [onnxRuntimePlain] });
  const isOutside = model.files().length > 1;
  await writeModel(model, output, { replacements: editing.streams, externalData: isOutside ? 'always' : 'auto' });
});
process.exit();
`;

const COUNT = `
import onnx, sys
nodes = onnx.load(sys.argv[1], load_external_data=False).graph.node
print(sum(node.op_type != "Constant" for node in nodes))
`;

/** Ours first, then the same without a proof, then the peers. */
interface Folder {
  readonly name: string;
  argv(model: string, output: string): readonly string[];
}

const foldersOf = (context: BenchContext, { python, polygraphy }: Peers): readonly Folder[] => {
  const program = (name: string) => join(dirname(python), name);
  return [
    { name: 'trtforge', argv: (model, output) => trtforge(context, 'edit', model, '--fold', '-o', output) },
    {
      name: 'without the proof',
      argv: (model, output) => {
        const script = [process.execPath, '--input-type=module', '-e', UNPROVEN];
        return [...script, context.root, model, output];
      },
    },
    { name: 'onnxsim', argv: (model, output) => [program('onnxsim'), model, output] },
    { name: 'OnnxSlim', argv: (model, output) => [program('onnxslim'), model, output] },
    {
      name: 'polygraphy surgeon',
      argv: (model, output) => [polygraphy, 'surgeon', 'sanitize', '--fold-constants', model, '-o', output],
    },
  ];
};

/** `edit --fold` beside onnxsim, OnnxSlim and `polygraphy surgeon`: of 1 GiB of weights, and of small models that these install. */
export const edit: BenchCase = {
  name: 'edit',
  slow: true,
  run: (context) => {
    const skipped: string[] = [];
    const commands = [
      'trtforge edit MODEL --fold -o RESULT',
      'the same modules without the proof',
      'onnxsim MODEL RESULT',
      'onnxslim MODEL RESULT',
      'polygraphy surgeon sanitize --fold-constants MODEL -o RESULT',
    ];
    const result = { case: 'edit', title: 'Fold constants and shapes (at most 2 runs, without a warm-up)' };
    const peers = peersOr(context, skipped);
    if (peers === undefined) return { ...result, commands, measurements: [], skipped };
    const folders = foldersOf(context, peers);
    const large = [
      { what: '1 GiB in one file', more: [] },
      { what: '1 GiB of external data', more: ['--external'] },
    ].map(({ what, more }) => {
      const model = generate(context, 'exported-encoder', '1GiB', ...more);
      try {
        return folded(context, folders, peers, what, model);
      } finally {
        removeModel(model);
      }
    });
    const small = smallModels(context, peers).map((model) =>
      folded(context, folders, peers, basename(model, '.onnx'), model),
    );
    const tables = [
      ...large.map(({ table }) => table),
      {
        caption: 'Nodes of small models after folding',
        head: ['', 'before', ...folders.flatMap(({ name }, at) => (at === 1 ? [] : [name]))],
        rows: small.map(({ what, before, nodes }) => [
          what,
          String(before),
          ...nodes.flatMap((count, at) => (at === 1 ? [] : [textOf(count)])),
        ]),
      },
      {
        caption: `The ${small.length} small models one after the other`,
        head: ['', ...folders.map(({ name }) => name)],
        rows: [
          ['wall time, s', ...sums(small, ({ seconds }) => seconds)],
          ['processor time, s', ...sums(small, ({ cpuSeconds }) => cpuSeconds)],
        ],
      },
    ];
    return {
      ...result,
      commands,
      measurements: large.flatMap(({ measurements }) => measurements),
      tables,
      skipped,
    };
  },
};

interface Folded {
  readonly what: string;
  readonly before: number;
  /** Of each command. */
  readonly runs: readonly CommandRuns[];
  readonly nodes: readonly number[];
  readonly measurements: readonly Measurement[];
  readonly table: Table;
}

function folded(
  context: BenchContext,
  folders: readonly Folder[],
  { python }: Peers,
  what: string,
  model: string,
): Folded {
  const outputs = folders.map((_, at) => join(context.folder, `folded-${at}.onnx`));
  const commands = folders.map(({ argv }, at) => argv(model, outputs[at]!));
  const runs = measureCommands(commands, {
    // Peers leave files where they run.
    cwd: context.folder,
    runs: Math.min(context.runs, MOST_RUNS),
    // The model was written a moment ago.
    warmups: 0,
    before: (which) => removeModel(outputs[which]!),
  });
  const nodesOf = (path: string) =>
    Number(spawnSync(python, ['-c', COUNT, path], { encoding: 'utf8' }).stdout);
  const nodes = outputs.map(nodesOf);
  for (const output of outputs) removeModel(output);
  const row = (
    unit: Measurement['unit'],
    text: string,
    figures: readonly (number | null)[],
  ): { readonly measurements: readonly Measurement[]; readonly row: readonly string[] } => {
    const peers = folders.slice(2).flatMap(({ name }, at) => {
      const figure = figures[at + 2];
      return figure == null ? [] : [{ name, figure }];
    });
    const best = peers.toSorted((a, b) => a.figure - b.figure)[0];
    const own = [0, 1].flatMap((at): Measurement[] => {
      const figure = figures[at];
      const name = `${what}${at === 1 ? ' without the proof' : ''}, ${text}`;
      return figure == null || best === undefined ? [] : [{ what: name, unit, ours: figure, peer: best }];
    });
    return { measurements: own, row: [`${text}, ${unit}`, ...figures.map(textOf)] };
  };
  const rows = [
    row(
      's',
      'wall time',
      runs.map(({ median }) => median.seconds),
    ),
    row(
      's',
      'processor time',
      runs.map(({ median }) => median.cpuSeconds),
    ),
    row(
      'MB',
      'peak memory',
      runs.map(({ median }) => median.peakBytes && median.peakBytes / 1e6),
    ),
    row('nodes', 'nodes left', nodes),
  ];
  return {
    what,
    before: nodesOf(model),
    runs,
    nodes,
    measurements: rows.flatMap(({ measurements }) => measurements),
    table: {
      caption: what,
      head: ['', ...folders.map(({ name }) => name)],
      rows: rows.map((each) => each.row),
    },
  };
}

const textOf = (figure: number | null): string =>
  figure === null ? '' : figure >= 100 ? figure.toFixed(0) : figure.toPrecision(3);

const sums = (all: readonly Folded[], figure: (cost: CommandRuns['median']) => number | null) =>
  all[0]!.runs.map((_, at) => {
    const figures = all.map(({ runs }) => figure(runs[at]!.median));
    return textOf(figures.reduce<number>((sum, each) => sum + (each ?? 0), 0));
  });

/** What the onnx package and this repository ship, and generated ones. */
function smallModels(context: BenchContext, { python }: Peers): readonly string[] {
  const script = 'import onnx, os; print(os.path.dirname(onnx.__file__))';
  const onnx = spawnSync(python, ['-c', script], { encoding: 'utf8' }).stdout.trim();
  const light = ['densenet121', 'inception_v1', 'inception_v2', 'resnet50', 'shufflenet', 'squeezenet'];
  return [
    ...light.map((name) => join(onnx, `backend/test/data/light/light_${name}.onnx`)),
    ...['encoder', 'predictor', 'joint'].map((name) =>
      join(context.root, `examples/recogniser/bundle/${name}.onnx`),
    ),
    generate(context, 'exported-encoder', 'tiny'),
    generate(context, 'transformer-encoder', 'small'),
    generate(context, 'resnet50', 'small'),
    join(generate(context, 'parakeet', 'tiny'), 'encoder.onnx'),
    join(generate(context, 'streaming-encoder', 'tiny'), 'encoder_streaming.onnx'),
  ].filter((path) => existsSync(path));
}

function removeModel(path: string): void {
  for (const file of [path, `${path}.data`, `${path}-work`]) rmSync(file, { force: true, recursive: true });
}
