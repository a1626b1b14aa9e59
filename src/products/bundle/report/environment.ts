import { join, relative } from 'node:path';
import { formatBytes, plural } from '../../../base/text/quantity.js';
import { markup } from '../../../report/markup.js';
import { code, details, facts, type SectionFacts } from '../../../report/parts.js';
import type { ForgeResult } from '../../../report/result.js';
import type { BundleReport, ComponentReport } from '../report-schema.js';
import { modelBytes } from './sentences.js';

/** Where the page lies beside the engines. */
export const bundlePage = ({ outdir }: BundleReport): string => join(outdir, 'report.html');

/** What the engines were made from, by digest, and where their passports and logs are. */
export function digestsSection({ components }: BundleReport): SectionFacts | null {
  const known = components.filter(({ onnx_sha256, identity }) => onnx_sha256 !== null || identity !== null);
  if (known.length === 0) return null;
  return {
    id: 'digests',
    title: 'Digests and passports',
    lead: 'What each engine was made from and how to know it again. The identity is the digest of model, recipe and target; equal identities are not built twice.',
    body: known.map((one) =>
      details(
        markup`<strong>${one.component}</strong> <span class="muted">${one.identity?.slice(0, 12) ?? ''}</span>`,
        facts(digestRows(one)),
      ),
    ),
  };
}

function digestRows(one: ComponentReport) {
  const before = modelBytes(one);
  const external =
    one.external_data &&
    `${plural(one.external_data.files, 'file')}, ${formatBytes(one.external_data.bytes)}, ${one.external_data.sha256}`;
  const rows: readonly (readonly [string, string | null])[] = [
    ['identity', one.identity],
    ['target', one.target],
    ['engine', one.engine_bytes === null ? null : one.engine],
    ['its SHA-256', one.engine_sha256],
    ['passport', one.passport],
    ['ONNX', before === null ? one.onnx : `${one.onnx}, ${formatBytes(before)}`],
    ['its SHA-256', one.onnx_sha256],
    ['external data', external],
    ['model digest', one.model_digest],
    ['build log', one.logs.build],
    ['smoke log', one.logs.smoke],
  ];
  return rows.flatMap(([name, text]) => (text === null ? [] : [[name, code(text), 'wide'] as const]));
}

/** What the folder holds, by its path in there. */
export function bundleFiles({
  outdir,
  report,
  timing_cache,
  components,
}: BundleReport): ForgeResult['files'] {
  const all: readonly (readonly [string | null, string])[] = [
    [report, 'the result that this page is made of'],
    ...components.flatMap((one): readonly (readonly [string | null, string])[] => [
      [one.engine_bytes === null ? null : one.engine, `the engine of the ${one.component}`],
      [one.passport, 'its passport'],
      [one.logs.build, 'what its builder said'],
      [one.logs.smoke, 'what its smoke run said'],
    ]),
    [timing_cache, "the builder's timing cache"],
  ];
  return all.flatMap(([path, what]) => (path === null ? [] : [{ path: relative(outdir, path), what }]));
}
