import { plural } from '../../../base/text/quantity.js';
import {
  badge,
  charts,
  code,
  command,
  facts,
  fold,
  numbers,
  type Section,
  table,
} from '../../../report/blocks.js';
import { errorMapChart } from '../../../report/chart/errors.js';
import { plotChart } from '../../../report/chart/plot.js';
import { linearScale, logScale } from '../../../report/chart/scale.js';
import { defineReport } from '../../../report/pages/report.js';
import {
  formatMeasure,
  nameOfFile,
  outcomeTone,
  outcomeWord,
  precisionLabel,
} from '../../../report/sentences.js';
import { type LayerComparison, layerComparisonSchema, lossOf } from './result.js';

/** The report of `trtforge compare layers`. */
export const layersReport = defineReport<LayerComparison>({
  source: 'compare layers',
  file: 'compare-layers.json',
  result: layerComparisonSchema,
  page: (result) => ({
    name: nameOfFile(result.candidate),
    subtitle: `against ${result.reference}`,
    kind: 'Layers',
    version: result.version,
    verdict: {
      outcome: result.outcome,
      word: outcomeWord[result.outcome],
      headline: result.headline,
      reasons: result.reasons,
    },
    figures: [
      { text: String(result.tensors.length), name: 'tensors compared' },
      { text: String(result.diverging), name: 'diverge' },
    ],
    sections: [errorSection(result), mapSection(result), runSection(result)],
  }),
});

/** Errors below a hundred-millionth of a tensor are those of FP32. */
const SMALLEST_ERROR = 1e-8;

function errorSection({ tensors, firstDivergence, worst }: LayerComparison): Section {
  const errors = tensors.map(lossOf);
  const largest = Math.max(1, ...errors.filter(Number.isFinite));
  const plot = plotChart({
    title: 'Error of each tensor',
    description: `From first to last in graph order: the error over the size of the tensor, RMS. First divergence: ${firstDivergence ?? 'none'}; largest error: ${worst ?? 'none'}.`,
    x: { title: 'tensor, in graph order', scale: linearScale(1, tensors.length, 8, String) },
    y: { title: 'error / size, RMS', scale: logScale(SMALLEST_ERROR, largest) },
    points: tensors.map(({ name, outcome }, index) => ({
      x: index + 1,
      y: Number.isFinite(errors[index]) ? errors[index]! : largest,
      tone: outcome === 'fail' ? 'bad' : 'accent',
      name,
    })),
  });
  return {
    id: 'errors',
    title: 'Error by layer',
    lead:
      firstDivergence === null
        ? 'No tensor is beyond the limits.'
        : `The first tensor beyond the limits is ${firstDivergence}.`,
    blocks: [
      charts({
        chart: plot,
        caption: 'Red tensors are beyond the limits; values that are not finite lie at the top.',
      }),
      fold('All tensors', tensorTable(tensors)),
    ],
  };
}

const tensorTable = (tensors: LayerComparison['tensors']) =>
  table(
    'Tensors in graph order',
    [
      'tensor',
      'operator',
      'outcome',
      ...numbers('max', 'max relative', 'SQNR in dB', 'cosine', 'not finite'),
    ],
    tensors.map(({ name, op, outcome, error, nonFinite }) => [
      code(name),
      op,
      badge(outcome, outcomeTone[outcome]),
      ...(error === null
        ? ['', '', '', '']
        : [error.maxAbs, error.maxRelative, error.sqnr, error.cosine].map(formatMeasure)),
      String(nonFinite.mismatching),
    ]),
  );

const mapSection = ({ maps, firstDivergence }: LayerComparison): Section | null =>
  maps.length === 0
    ? null
    : {
        id: 'maps',
        title: 'Where the error is',
        lead: 'Mean absolute error over the two longest axes; other axes and samples are averaged.',
        blocks: maps.map((map) =>
          charts({
            chart: errorMapChart(map),
            caption: [
              code(map.tensor),
              map.tensor === firstDivergence ? ': first divergence' : ': largest error',
            ],
          }),
        ),
      };

const runSection = (result: LayerComparison): Section => ({
  id: 'run',
  title: 'How it was compared',
  lead: `${plural(result.samples, 'sample')} with seed ${result.seed}, by the limits of ${precisionLabel(result.precision)}.`,
  blocks: [
    facts([
      ['reference', result.referenceBackend],
      ['candidate', result.candidateBackend],
      ['tensors of the reference only', String(result.onlyReference)],
      ['tensors of the candidate only', String(result.onlyCandidate)],
      ['tensors inside of kernels, not compared', result.engine && String(result.engine.inside)],
      [
        'outputs of the engine with more outputs',
        result.engine && (result.engine.outputsFail ? 'fail too' : 'do not fail'),
      ],
    ]),
    result.repeat === null ? null : command(result.repeat),
  ],
});
