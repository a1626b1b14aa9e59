import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { TrtforgeError } from '../../src/errors.js';
import { present } from '../../src/report/blocks.js';
import { type ForgeResult, forgeResultSchema, type Heal } from '../../src/report/forge-result.js';
import { forgeReport } from '../../src/report/pages/forge.js';
import { readReport, renderReport } from '../../src/report/pages/report.js';
import { computedNodes, conversionSentence } from '../../src/report/sentences.js';
import { plainColors } from '../support/plain-colors.js';
import { failedSample, sampleResult, stoppedSample } from './sample.js';

const html = (result: ForgeResult) => renderReport({ kind: forgeReport, result }, 'html').content;
const markdownOf = (result: ForgeResult) => renderReport({ kind: forgeReport, result }, 'markdown').content;

const samples = { pass: sampleResult(), fail: failedSample(), stopped: stoppedSample() };
const HOSTILE = `x"></title></script><script>alert(1)</script><img src=q onerror=alert(1)>|\`\n# \u202e`;

/** The same result with every text that comes from a model, a file name or a log replaced by an attack. */
function attacked(result: ForgeResult): ForgeResult {
  const kept = new Set([
    'task',
    'contract',
    'numeric',
    'schema',
    'status',
    'outcome',
    'severity',
    'source',
    'precision',
    'startedAt',
    'kind',
    'ioTypes',
    'digest',
    'sha256',
    'timingCache',
  ]);
  const replace = (value: unknown, key: string): unknown => {
    if (typeof value === 'string')
      return kept.has(key) || ['NaN', 'Infinity', '-Infinity'].includes(value) ? value : HOSTILE;
    if (Array.isArray(value)) return value.map((item) => replace(item, key));
    // The schema admits no hostile text in these.
    if (key === 'document') return value;
    if (value !== null && typeof value === 'object')
      return Object.fromEntries(
        Object.entries(value).map(([name, item]) => [
          key === 'ops' || key === 'opsets' || key === 'types' ? HOSTILE + name : name,
          replace(item, name),
        ]),
      );
    return value;
  };
  const hostile = replace(result, '') as ForgeResult;
  if (hostile.build !== null) hostile.build.passport.name = result.build!.passport.name;
  return forgeResultSchema.parse(hostile);
}

describe.each(Object.entries(samples))('the page of a run: %s', (_, result) => {
  const page = html(result);

  test('carries the result as JSON', () => {
    const [, json] = /<script type="application\/json" id="result">(.*?)<\/script>/s.exec(page)!;
    expect(JSON.parse(json!)).toEqual(result);
  });

  test('has one script that runs, by its digest, and refers to nothing outside', () => {
    const scripts = [...page.matchAll(/<script>(.*?)<\/script>/gs)].map(([, source]) => source!);
    const digests = scripts.map((source) => createHash('sha256').update(source).digest('base64'));
    expect(page).toContain(`script-src 'sha256-${digests.join()}'; style-src 'sha256-`);
    expect([...page.matchAll(/<script/g)]).toHaveLength(2);
    const written = page.replace(/<script.*?<\/script>/gs, '');
    expect(written).not.toMatch(/\s(src|srcset|action|style|on\w+)=/);
    expect([...page.matchAll(/href="([^"]*)"/g)].every(([, target]) => /^(#|data:,)/.test(target!))).toBe(
      true,
    );
    expect(page).not.toMatch(/url\(|@import/);
  });

  test('uses every id once and points only at ids that are there', () => {
    const ids = [...page.matchAll(/\sid="([^"]*)"/g)].map(([, id]) => id!);
    expect(new Set(ids).size).toBe(ids.length);
    const referred = [...page.matchAll(/(?:aria-labelledby|href)="#?([^":]*)"/g)].flatMap(([, list]) =>
      list!.split(' '),
    );
    expect(referred.filter((id) => !ids.includes(id))).toEqual([]);
  });
});

describe('hostile names', () => {
  const page = html(attacked(failedSample()));

  test('open no element in the page', () => {
    expect(/<img|<script>alert/.test(page)).toBe(false);
    expect([...page.matchAll(/<\/script>/g)]).toHaveLength(2);
    expect([...page.matchAll(/<\/title>/g)].length).toBe([...page.matchAll(/<title/g)].length);
    expect(page.includes('\u202e')).toBe(false);
  });

  test('open no element, table cell or heading in the Markdown', () => {
    const markdown = markdownOf(attacked(failedSample()));
    const outside = markdown.replace(/(`+)(?!`)[\s\S]*?(?<!`)\1(?!`)/g, '');
    expect(/<(?!!)/.test(outside)).toBe(false);
    for (const row of markdown.split('\n').filter((line) => line.startsWith('| '))) {
      const columns = row.replaceAll('\\|', '').split('|').length;
      expect(columns, row).toBeGreaterThan(3);
    }
    expect(outside.match(/^# /gm)).toHaveLength(1);
  });
});

describe('the sentences of the views', () => {
  test('a pass names the closest limit, a fail the furthest', () => {
    expect(markdownOf(samples.pass)).toContain(
      '2 of 2 outputs stay within tolerance on 3 samples; features comes closest to its limit: max is 0.0083, within the limit 0.01.',
    );
    expect(markdownOf(samples.fail)).toContain(
      'logits is furthest out: max is Infinity, above the limit 0.01.',
    );
  });

  test('a run that stopped states where, with which code, and what to do; and shows what it had', () => {
    for (const view of [markdownOf(samples.stopped), html(samples.stopped)]) {
      expect(view).toContain('The run stopped in its phase build.');
      expect(view).toContain('library-not-found');
      expect(view).toContain('TF_TOOLCHAIN_NOT_FOUND');
      expect(view).toContain('trtforge toolchain install tensorrt-rtx --accept-license');
      expect(view).toContain('not reached');
      expect(view).toMatch(/Precision/);
      expect(view).not.toMatch(/Accuracy/);
    }
  });

  test('every node that stays in FP32 is listed with its rule and reason', () => {
    const page = html(samples.pass);
    const { rules, kept } = samples.pass.conversion!;
    for (const { title } of rules) expect(page).toContain(title);
    for (const { node, reason } of kept) {
      expect(page).toContain(node);
      expect(page).toContain(reason);
    }
  });

  test('a rule that keeps thousands of nodes names some and counts the rest', () => {
    const kept = Array.from({ length: 5000 }, (_, index) => ({
      node: `/node_${index}`,
      op: 'Pow',
      rule: 'op-default',
      reason: 'why',
    }));
    const conversion = {
      ...sampleResult().conversion!,
      kept,
      rules: [{ id: 'op-default', title: 'rule', nodes: 5000 }],
    };
    const page = html(sampleResult({ conversion }));
    expect(page).toContain('and 4\u202f800 more in the JSON');
    expect(page).toContain('"/node_4999"');
  });
});

describe('reading a result', () => {
  const folder = mkdtempSync(join(tmpdir(), 'trtforge-report-'));
  const read = (path: string) => readReport(path, [forgeReport]).result;
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test('from its run root or from the file', () => {
    const path = join(folder, 'report.json');
    writeFileSync(path, JSON.stringify(samples.fail));
    expect(read(folder)).toEqual(samples.fail);
    expect(read(path)).toEqual(samples.fail);
  });

  test('of an earlier version is an error that names both versions', () => {
    const path = join(folder, 'earlier.json');
    writeFileSync(path, JSON.stringify({ ...samples.fail, schema: 'trtforge.forge/1' }));
    const error = { code: 'TF_REPORT_INVALID', message: expect.stringMatching(/version 1 .*forge\/2/) };
    expect(() => read(path)).toThrow(expect.objectContaining(error));
  });

  test.each([
    ['text', 'no JSON', 'TF_REPORT_INVALID'],
    ['another schema', '{"schema":"trtforge.inspect/1"}', 'TF_REPORT_INVALID'],
    [
      'an unknown outcome',
      JSON.stringify({ ...samples.pass, verdict: { outcome: 'good', headline: '', reasons: [] } }),
      'TF_REPORT_INVALID',
    ],
  ])('%s is rejected by name', (name, content, code) => {
    const path = join(folder, `${name}.json`);
    writeFileSync(path, content);
    expect(() => read(path)).toThrow(
      expect.objectContaining({ code, message: expect.stringContaining(path) }),
    );
  });

  test('a folder without a result is a missing file', () => {
    expect(() => read(join(folder, 'nowhere'))).toThrow(
      expect.objectContaining({ code: 'TF_FILE_NOT_FOUND' }),
    );
  });

  test('a damaged result is read or rejected, and what is read can be rendered', () => {
    const path = join(folder, 'damaged.json');
    const whole = JSON.stringify(samples.pass);
    fc.assert(
      fc.property(fc.nat(), fc.string({ maxLength: 6 }), fc.nat(40), (place, inserted, cut) => {
        const at = place % whole.length;
        writeFileSync(path, whole.slice(0, at) + inserted + whole.slice(at + cut));
        try {
          const read = readReport(path, [forgeReport]);
          expect(renderReport(read, 'html').content).toContain('</html>');
          expect(renderReport(read, 'markdown').content).toContain('## Repeat it');
        } catch (error) {
          expect(error).toBeInstanceOf(TrtforgeError);
        }
      }),
      { numRuns: 200 },
    );
  });
});

test('the layers of a quantized model are listed by precision, those quantized in vain first', () => {
  const markdown = markdownOf(samples.pass);
  expect(markdown).toContain('51 of 53 Conv in INT8, 2 in FP16');
  expect(markdown).toContain('0 of 1 quantized attention fused');
  expect(markdown.indexOf('layer3.0.conv2')).toBeGreaterThan(0);
  expect(markdown.indexOf('layer3.0.conv2')).toBeLessThan(
    markdown.indexOf('The model does not quantize it.'),
  );
});

describe('a verdict that a slice decided', () => {
  const slice = { axis: 1, position: 4 };
  const passed = sampleResult().verification!;
  const [first, second] = passed.outputs;
  const checks = [
    { statistic: 'max', measured: 0.0083, limit: 0.01, pass: true, sample: 0 },
    { statistic: 'RMS', measured: 0.5, limit: 0.001, pass: false, sample: 2, slice },
  ];
  const judged = {
    fail: { ...second!, name: 'boxes', outcome: 'fail' as const, pass: false, checks },
    inconclusive: {
      ...second!,
      name: 'boxes',
      outcome: 'inconclusive' as const,
      planted: [{ error: 'zeros' as const, slice: { axis: 1, positions: [4, 5] } }],
    },
  };
  const factsOf = (outcome: keyof typeof judged, more = {}) => {
    const verification = { ...passed, ...more, outcome, outputs: [first!, judged[outcome]] };
    const section = present(forgeReport.page(sampleResult({ verification })).sections).find(
      ({ id }) => id === 'accuracy',
    );
    const blocks = present(section!.blocks);
    return {
      facts: new Map(blocks.flatMap((block) => (block.kind === 'facts' ? block.facts : []))),
      charts: blocks.flatMap((block) =>
        block.kind === 'charts' ? block.charts.map(({ chart }) => chart) : [],
      ),
    };
  };

  test('shows the output, its slice, sample and margin, and charts that output first', () => {
    const { facts, charts } = factsOf('fail');
    expect(Object.fromEntries(facts)).toMatchObject({
      samples: '3',
      'decided by': 'boxes',
      slice: 'position 4 of axis 1',
      'worst sample': '2',
      margin: '500 times the limit',
    });
    expect(charts[0]?.title).toContain('boxes');
    expect(String(charts[0]?.marks)).toContain('position 4');
  });

  test('shows what the limits accept where it is undecided', () => {
    const { facts, charts } = factsOf('inconclusive');
    expect(JSON.stringify(facts.get('would pass too'))).toContain('zeros at positions 4, 5 of axis 1');
    expect(charts[0]?.title).toContain('boxes');
  });

  test('counts samples by kind and names the worst where the result has them', () => {
    const samples = ['cat.png', 'dog.png', 'zeros'].map((origin, at) => ({
      origin,
      kind: at < 2 ? 'data' : 'edge',
    }));
    const { facts } = factsOf('fail', { samplesFrom: { samples, available: 2 } });
    expect(facts.get('samples')).toMatch(/^3, 2 .*, 1 /);
    expect(facts.get('worst sample')).toBe('2 zeros');
  });
});

describe('the ring of the tolerance', () => {
  const passed = sampleResult().verification!;
  const figures = (outcome: 'pass' | 'inconclusive', more: Partial<ForgeResult> = {}) => {
    const outputs = passed.outputs.map((output) => ({ ...output, outcome }));
    const verification = { ...passed, outcome, outputs };
    return forgeReport.page(sampleResult({ verification, ...more })).figures!.map(({ name }) => name);
  };

  test('is there where a limit decided, and not beside a doubt', () => {
    expect(figures('pass')).toContain('of the tolerance used');
    expect(figures('inconclusive')).not.toContain('of the tolerance used');
    // A doubt about the model is the verdict, whatever its engine does.
    expect(figures('inconclusive', { engineVerification: passed })).not.toContain('of the tolerance used');
    expect(figures('pass', { engineVerification: passed })).toContain('of the tolerance used');
  });
});

test('decisions stand in the lead of the accuracy and beside the checks of their output', () => {
  const { verification } = sampleResult();
  const decisions = [
    {
      rule: 'above 0.5',
      reference: 44,
      kept: 43,
      lost: 1,
      new: 2,
      ties: 0,
      limit: 0.05,
      pass: true,
    } as const,
  ];
  const outputs = verification!.outputs.map((output, at) =>
    at === 0 ? { ...output, decisions: [...decisions] } : output,
  );
  const result = sampleResult({ verification: { ...verification!, outputs } });
  for (const content of [html(result), markdownOf(result)])
    expect(content.split('43 of 44 decisions (above 0.5) kept, 2 new')).toHaveLength(3);
});

test('what a verdict is not about stands on its page', () => {
  const { verification } = sampleResult();
  const outputs = verification!.outputs.map((output, at) =>
    at > 0
      ? output
      : {
          ...output,
          classes: { axis: 1, of: 214, unpredicted: 161 },
          unstable: [{ sample: 2, moved: 0.2 }],
        },
  );
  const unreached = {
    branches: [{ node: 'If_3', branch: 'else' as const, message: 'No sample took it.' }],
    tables: [],
  };
  const result = sampleResult({ verification: { ...verification!, outputs, unreached } });
  for (const content of [html(result), markdownOf(result)])
    for (const text of ['No sample took it.', '161 of 214 classes', 'sample 2 does not decide'])
      expect(content).toContain(text);
});

test('quantization counts convolutions and matrix products, with the reasons of those left out', () => {
  const { conversion } = sampleResult();
  const node = (name: string, op: string, rule: string) => ({
    node: name,
    op,
    quantized: rule === 'weighted' || rule === 'residual',
    rule,
    reason: '',
  });
  const quantized = {
    ...conversion!,
    precision: 'int8' as const,
    kept: [{ node: 'd', op: 'MatMul', rule: 'op-default', reason: '' }],
    quantization: {
      rest: 'fp16' as const,
      method: 'entropy',
      nodes: [
        node('a', 'Conv', 'weighted'),
        node('b', 'Conv', 'few-channels'),
        node('sum', 'Add', 'residual'),
        node('c', 'Gemm', 'weighted'),
        node('d', 'MatMul', 'activations'),
      ],
      rules: [
        { id: 'weighted', title: 'Operations with a stored weight', quantized: true, nodes: 2 },
        { id: 'few-channels', title: 'Few channels', quantized: false, nodes: 1 },
        { id: 'activations', title: 'A product of two activations', quantized: false, nodes: 1 },
      ],
      activations: [{ tensor: 'x', amax: 1, scale: 0.1 }],
      weights: 2,
    },
  };
  expect(computedNodes(quantized)).toMatchObject({ all: 4, lowest: 2, share: 0.5, label: 'INT8', stay: [] });
  expect(conversionSentence(quantized)).toBe(
    '1 of 2 convolutions and 1 of 2 matrix products in INT8, 1 in FP16: few channels (1); 1 in FP32: a product of two activations (1).',
  );
  const page = renderReport(
    { kind: forgeReport, result: sampleResult({ conversion: quantized }) },
    'markdown',
  );
  expect(page.content).toContain('1 of 2 convolutions');
  expect(computedNodes({ ...conversion!, convertedOps: { Conv: 118 } })).toMatchObject({
    ...{ all: 122, lowest: 118, label: 'FP16' },
    others: [
      { type: 'FP32', id: 'op-default' },
      { type: 'FP32', id: 'reduction-depth' },
    ],
  });
});

test.each([
  ['trtforge forge model.onnx', 'trtforge forge model.onnx --heal'],
  [null, failedSample().verification!.next!.bisect!],
])(
  'a failed run of %s ends with the line that goes on, in the terminal and in Markdown',
  async (repeat, next) => {
    const { command } = await import('../../src/cli/commands/forge.js');
    const failed = { ...failedSample(), repeat };
    const printed: string[] = [];
    command.render(failed, { line: (line = '') => printed.push(line), colors: plainColors, verbose: false });
    expect(printed).toContain(`Next: ${next}`);
    const { content } = renderReport({ kind: forgeReport, result: failed }, 'markdown');
    expect(content.split('\n')).toContain(next);
  },
);

test('what healing costs is beside the failed engine and FP32, in page, Markdown and terminal', async () => {
  const { command } = await import('../../src/cli/commands/forge.js');
  const price = (higher: number, more: Partial<Heal['prices'][number]>) => ({
    ...{ nodes: { higher, all: 40 }, flops: higher / 40, modelBytes: 2048, engineBytes: 4096 },
    ...{ gpuMs: null, what: 'failed' as const, ...more },
  });
  const healed = (ms: readonly (number | null)[]): ForgeResult => ({
    ...sampleResult(),
    heal: {
      ...{
        outcome: 'found',
        headline: 'It passes.',
        reasons: [],
        failed: 'It failed.',
        tf32: true,
        tried: 3,
      },
      raised: [{ nodes: ['sum'], to: 'fp32', option: 'keep-nodes' }],
      ...{ isSmallest: true, isUnseen: true, limitMs: 1000, folder: 'heal' },
      prices: [
        price(0, { gpuMs: ms[0] ?? null }),
        price(3, { what: 'healed', gpuMs: ms[1] ?? null }),
        price(40, { what: 'fp32', engineBytes: null, gpuMs: ms[2] ?? null }),
      ],
    },
  });
  const printed = (result: ForgeResult) => {
    const lines: string[] = [];
    command.render(result, { line: (line = '') => lines.push(line), colors: plainColors, verbose: false });
    return lines.map((line) => line.trim().replaceAll(/ {2,}/g, ' | ').replaceAll(/\s/g, ' '));
  };
  const measured = healed([1, 2, 4]);
  expect(markdownOf(measured).replaceAll(/\s/g, ' ')).toContain(
    '| healed | 3 of 40 | 7.5 % | 2.00 KiB | 4.00 KiB | 2.0 ms |',
  );
  expect(printed(measured)).toEqual(
    expect.arrayContaining([
      'failed | 0 of 40 | 0 % | 2.00 KiB | 4.00 KiB | 1.0 ms',
      'healed | 3 of 40 | 7.5 % | 2.00 KiB | 4.00 KiB | 2.0 ms',
      'FP32 | 40 of 40 | 100 % | 2.00 KiB | – | 4.0 ms',
    ]),
  );
  for (const cell of ['3 of 40', '7.5 %', '2.0 ms', '4.0 ms'])
    expect(html(measured).replaceAll(/\s/g, ' ')).toContain(`>${cell}<`);
  // Where nothing was measured, the FLOPs remain.
  expect(printed(healed([]))).toContain('healed | 3 of 40 | 7.5 % | 2.00 KiB | 4.00 KiB');
});
