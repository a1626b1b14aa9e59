import { formatBytes, formatCount, formatMs, formatShare, plural } from '../../../base/text/quantity.js';
import { originText } from '../../../engines/builder/result.js';
import { typeLabel } from '../../../formats/tensor/dtype.js';
import type { Measure } from '../../../quality/verify/result.js';
import {
  charts,
  code,
  facts,
  fold,
  json,
  labelled,
  lines,
  list,
  numbers,
  type Section,
  strong,
  table,
} from '../../blocks.js';
import { type Bar, barChart } from '../../chart/bars.js';
import type { Tone } from '../../chart/frame.js';
import type { ForgeResult } from '../../forge-result.js';
import {
  contentsSentence,
  engineSentence,
  floatingNodes,
  gpusOf,
  layerSentences,
  libraryOf,
  missLines,
  modelBytes,
  precisionLabel,
} from '../../sentences.js';

/** The engine and its passport. */
export function engineSection({ engine, passport, build, profileFrom }: ForgeResult): Section | null {
  if (build === null) return null;
  const { source, why } = build;
  const { os, arch } = build.passport.identity.document.target;
  return {
    id: 'engine',
    title: 'The engine',
    lead: engineSentence(build),
    blocks: [
      facts([
        ['name', code(build.passport.name)],
        ['identity', code(build.identity)],
        ['plan', code(engine ?? '–')],
        ['passport', code(passport ?? '–')],
        ['size', formatBytes(build.passport.plan.bytes)],
        ['build', formatMs(build.passport.built.ms)],
        ['made with', libraryOf(build.passport)],
        ['serves', gpusOf(build.passport) || 'the GPU it was built on'],
        ['platform', `${os} ${arch}`],
        ['store', source !== 'built' || why.length === 0 ? null : lines(why.flatMap(missLines))],
        ['profiles', profileFrom.length === 0 ? null : lines(profileFrom.map(originText))],
      ]),
      fold('The passport in full', json(build.passport)),
    ],
  };
}

/** The types that the layers of a quantized model compute in. */
export function layersSection({ build }: ForgeResult): Section | null {
  const precisions = build?.passport.plan.precisions;
  if (precisions === undefined) return null;
  const types = [...new Set(precisions.operators.flatMap((each) => Object.keys(each.types)))];
  return {
    id: 'layers',
    title: 'Layers by precision',
    lead: `By the program in the plan: ${layerSentences(precisions).join('; ')}.`,
    blocks: [
      table(
        'Nodes by what they compute in',
        ['operator', ...numbers('nodes', ...types.map(typeLabel))],
        precisions.operators.map(({ op, nodes, types: counts }) => [
          code(op),
          formatCount(nodes),
          ...types.map((type) => formatCount(counts[type] ?? 0)),
        ]),
      ),
      labelled('not fused', 'warn', precisions.attentions.reasons),
      list(
        floatingNodes(precisions).map((group) => ({
          label: { text: typeLabel(group.computes), tone: group.isProblem ? 'warn' : 'quiet' },
          text: [strong(plural(group.nodes.length, 'node')), `: ${group.reason}`],
          items: group.nodes.map((node) => ({ text: code(node) })),
        })),
      ),
    ],
  };
}

export const PLAN_COLOURS = 'Of a plan green: weights; amber: kernels; blue: their program.';

/** A bar of a plan's bytes. */
export const planParts = (contents: PlanBytes): NonNullable<Bar['parts']> =>
  (
    [
      ['weights', contents.weightsBytes, 'good'],
      ['kernels', contents.kernelsBytes, 'warn'],
      ['program', contents.programBytes, 'accent'],
    ] as const
  ).map(([what, bytes, tone]) => ({
    ...{ amount: Number(bytes), tone },
    name: `${formatBytes(Number(bytes))} of ${what}`,
  }));

type PlanBytes = Readonly<Record<'weightsBytes' | 'kernelsBytes' | 'programBytes', Measure>>;

/** Bytes on disk at each station of the way. */
export function sizesSection({ model, conversion, build }: ForgeResult): Section | null {
  if (model === null) return null;
  const original = modelBytes(model);
  const contents = build?.passport.plan.contents;
  const bar = (label: string, bytes: number, tone: Tone): Bar => {
    const share = bytes === original || original === 0 ? '' : ` · ${formatShare(bytes / original)}`;
    return { label, amount: bytes, text: `${formatBytes(bytes)}${share}`, tone };
  };
  const bars = [
    bar('ONNX as provided', original, 'quiet'),
    ...(conversion === null
      ? []
      : [bar(`ONNX typed ${precisionLabel(conversion.precision)}`, conversion.bytes.after, 'accent')]),
    ...(build === null
      ? []
      : [
          {
            ...bar('engine', build.passport.plan.bytes, 'good'),
            ...(contents && { parts: planParts(contents) }),
          },
        ]),
  ];
  return {
    id: 'sizes',
    title: 'Sizes',
    lead: `${bars.map(({ label, text }) => `${label}: ${text}`).join(', ')}.${build === null ? '' : ` ${contentsSentence(contents)}`}`,
    blocks: [
      charts({
        chart: barChart('Size at each station', bars),
        caption: `Bytes on disk, external data included.${contents === undefined ? '' : ` ${PLAN_COLOURS}`}`,
      }),
    ],
  };
}
