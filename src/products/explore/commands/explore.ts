import { broughtBy, defineCommand, type TextOutput } from '../../../cli/command.js';
import { choice, text } from '../../../cli/option.js';
import { operatorLines, table } from '../../../cli/text.js';
import { openOptions } from '../../../engines/runtime/back-end.js';
import { enginesOptions } from '../../../engines/runtime/tensorrt/options.js';
import { inspectOptions } from '../../../formats/onnx/inspect.js';
import { aboutComparison, aboutSide, cellText } from '../cell-text.js';
import { exploreLayers } from '../explore.js';
import type { Explored, Row } from '../result.js';

const FROM =
  'file with facts of its layers, by its content: layers and times of trtexec (--exportLayerInfo, --exportProfile), results of bench --layers, compare layers, convert advise, the ONNX model';

export const command = defineCommand({
  arguments: [
    {
      name: 'A',
      describe:
        'an engine, an ONNX model, a run root of forge, or a .json file of layers or of bench; engines of TensorRT-RTX need no GPU',
    },
    { name: 'B', describe: 'another, beside it', optional: true },
  ],
  examples: [
    'trtforge explore model.onnx -o page.html',
    'trtforge explore layers-8.6.json layers-10.6.json -o page.html',
    'trtforge explore layers.json --from model.onnx --as model-explorer -o overlay',
  ],
  options: {
    output: text({
      flags: '-o, --output <file>',
      describe: 'where the page goes, or the folder of --as model-explorer (default: text alone)',
      writes: true,
    }),
    from: text({ flags: '--from <file>', describe: `of A: a ${FROM}`, repeat: true }),
    fromB: text({
      flags: '--from-b <file>',
      describe: 'of B: likewise; the ONNX model of A is that of B too',
      repeat: true,
    }),
    as: choice({
      flags: '--as <form>',
      describe:
        "page: one HTML file; model-explorer: node data that Google's Model Explorer lays over the ONNX model",
      choices: ['page', 'model-explorer'],
      default: 'page',
    }),
    shapes: {
      ...inspectOptions.shapes,
      describe:
        'shapes of inputs that FLOPs and bytes of a model are for, as x:1x3x224x224 (default: those of the measurement or of the first profile)',
    },
    device: { ...openOptions.device, describe: 'which visible GPU loads an engine (default: 0)' },
    ...enginesOptions,
  },
  schema: async () => (await import('../result.js')).exploreSchema,
  run: async ([a = '', b], options, context): Promise<Explored> => {
    const { output, from, fromB, as, shapes, ...load } = options;
    const ofB = [...from.filter((file) => file.toLowerCase().endsWith('.onnx')), ...fromB];
    const sides = [{ file: a, from, shapes }, ...(b === undefined ? [] : [{ file: b, from: ofB, shapes }])];
    const kinds = await broughtBy(context.products, 'reports');
    return exploreLayers({ sides, output, as }, { ...context, ...load, kinds });
  },
  render,
});

/** Rows that the text lists; the page and --json have all. */
const LISTED = 10;

function render({ sides, operators, comparison, written }: Explored, output: TextOutput): void {
  const { bold, dim } = output.colors;
  for (const side of sides) output.line(`${bold(side.file)}  ${dim(aboutSide(side))}`);
  for (const [index, { rows }] of sides.entries()) {
    if (sides.length > 1) break;
    output.line();
    const costs = rows.toSorted(
      (one, other) => (other.ms ?? 0) - (one.ms ?? 0) || (other.flops ?? 0) - (one.flops ?? 0),
    );
    for (const line of table(
      ['layer', 'operator', 'in', 'time', 'share', 'FLOPs', 'writes'],
      costs.slice(0, LISTED).map(cellsOf),
    ))
      output.line(line);
    if (rows.length > LISTED) output.line(dim(`and ${rows.length - LISTED} more of side ${index + 1}`));
  }
  output.line();
  for (const line of operatorLines(operators)) output.line(line);
  if (comparison !== null) {
    output.line();
    output.line(aboutComparison(comparison));
  }
  for (const note of new Set(sides.flatMap(({ notes }) => notes))) output.line(dim(`- ${note}`));
  for (const file of written) output.line(file);
}

const cellsOf = ({ name, operator, precision, ms, share, flops, bytes }: Row): string[] => [
  name.length > 52 ? `${name.slice(0, 51)}…` : name,
  operator,
  precision ?? '',
  cellText('ms', ms),
  cellText('share', share),
  cellText('flops', flops),
  cellText('bytes', bytes),
];
