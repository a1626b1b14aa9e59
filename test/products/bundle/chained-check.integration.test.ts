import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openOrtSession } from '../../../src/engines/runtime/onnxruntime/ort-session.js';
import { type EventListener, ignoreEvents } from '../../../src/events.js';
import { checkChain } from '../../../src/products/bundle/chained-check.js';
import { forgeBundle } from '../../../src/products/bundle/forge-bundle.js';
import type { ChainedComponent } from '../../../src/products/bundle/judge-chain.js';
import type { BundleReport } from '../../../src/products/bundle/result.js';
import type { TransducerFacts } from '../../../src/products/bundle/transducer.js';
import { changeModel, writeBundle } from '../../support/bundle.js';
import { describeWith, found } from '../../support/needs.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-chain-'));
const meta = await writeBundle(folder);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describeWith('onnxruntime', 'a bundle decoded twice', () => {
  const small = (name: string) =>
    new Map(
      name === 'joint'
        ? [
            ['encoder_output', [1, 32, 16]],
            ['predictor_output', [1, 16, 1]],
          ]
        : [
            ['y', [1, 1]],
            ['h', [2, 1, 16]],
            ['c', [2, 1, 16]],
          ],
    );
  const facts: TransducerFacts = {
    tokenLogits: 33,
    blankId: 32,
    durations: [0, 1, 2, 3, 4],
    smallest: { predictor: small('predictor'), joint: small('joint') },
    timeAxis: 2,
    tokenAxis: 2,
  };
  const request = {
    facts,
    features: { shape: [1, 128, 128], frames: 128 },
    seed: 7,
    samples: 2,
    precision: 'fp16' as const,
  };
  const from = (where: string) => (name: ChainedComponent) =>
    openOrtSession(join(where, `${name}.onnx`), { threads: 1 });

  test('by the same models decides the same to the last bit', async () => {
    const [check] = await checkChain(request, from(folder), [{ name: 'typed models', open: from(folder) }], {
      emit: ignoreEvents,
    });
    expect(check).toMatchObject({ outcome: 'pass', equal_sequences: 2, drifts: null, differences: [] });
    expect(check!.decisions).toBeGreaterThan(10);
    expect(check!.emitted_tokens).toBeGreaterThan(0);
    expect(check!.token_agreement).toBe(check!.decisions);
  });

  test.each(['encoder', 'predictor', 'joint'] as const)(
    'names the %s when that is the one that changed',
    async (broken) => {
      const other = join(folder, `other-${broken}`);
      await writeBundle(other);
      changeModel(join(other, `${broken}.onnx`), ({ graph }) => {
        for (const tensor of graph!.initializer.filter(
          ({ dims, rawData }) => dims.length >= 2 && rawData.length > 0,
        )) {
          const bytes = Uint8Array.from(tensor.rawData);
          const values = new Float32Array(bytes.buffer);
          for (const [index, value] of values.entries()) values[index] = -3 * value;
          tensor.rawData = bytes;
        }
      });
      const [check] = await checkChain(request, from(folder), [{ name: 'typed models', open: from(other) }], {
        emit: ignoreEvents,
      });
      expect(check?.drifts).toBe(broken);
      const untouched = check!.components.filter(({ component }) => component !== broken);
      for (const one of untouched)
        expect(one).toMatchObject({ max_abs: 0, relative_rms: 0, token_changes: 0 });
      expect(check!.outcome).toBe('fail');
      expect(check!.differences[0]).toMatchObject({
        reference_margin: expect.any(Number),
        low_margin: expect.any(Boolean),
      });
    },
  );
});

describeWith('toolchain', 'a bundle forged for tensorrt-rtx', () => {
  let report: BundleReport;
  const phases: string[] = [];
  const emit: EventListener = (event) => {
    if (event.type === 'phase-end') phases.push(event.phase);
  };
  const request = {
    meta,
    outdir: join(folder, 'engines'),
    precision: 'fp16',
    target: 'tensorrt-rtx:sm_89',
    store: false,
  } as const;
  beforeAll(async () => {
    report = await forgeBundle({ ...request, check: { seed: 0, samples: 2 } }, { emit });
  });

  test('has three real engines, all of one version', () => {
    expect(report).toMatchObject({ outcome: 'pass', env: { product: 'tensorrt-rtx' }, timing_cache: null });
    for (const { engine_bytes, layers, forge } of report.components) {
      const { peakMemoryBytes } = forge!.build!.passport.built;
      expect(engine_bytes).toBeGreaterThan(100_000);
      expect(layers).toBeGreaterThan(5);
      expect(peakMemoryBytes).toBeGreaterThan(1 << 20);
      expect(forge!.build!.identity).toMatch(/^[0-9a-f]{64}$/);
    }
    expect(phases).toEqual(expect.arrayContaining(['encoder: convert', 'joint: build', 'encoder: resolve']));
  });

  if (found('onnxruntime') === undefined) return;
  test('ran its typed models in place of the engines, and states it', () => {
    for (const { smoke, logs, component } of report.components) {
      expect(smoke).toMatchObject({ ran: 'typed model', backend: expect.stringContaining('ONNX Runtime') });
      expect(smoke?.instead).toMatch(/GPU|sm_89/);
      expect(smoke?.outputs.every(({ finite }) => finite)).toBe(true);
      expect(logs.smoke).toBe(join(request.outdir, 'build_logs', `${component}_smoke.log`));
    }
  });

  test('decodes as its models do, with the drift of each component measured', () => {
    const [check] = report.checks;
    expect(check).toMatchObject({ candidate: 'typed models', outcome: 'pass', samples: 2, frames: 256 });
    expect(check!.components.map(({ component }) => component)).toEqual(['encoder', 'predictor', 'joint']);
    for (const { relative_rms } of check!.components) {
      expect(relative_rms).toBeGreaterThan(0);
      expect(relative_rms).toBeLessThan(0.02);
    }
    expect(report.not_checked).toEqual([expect.stringMatching(/^The engines were not decoded with: /)]);
  });

  test('keeps its engines, and can still be checked, when forged again', async () => {
    const again = await forgeBundle({ ...request, check: { seed: 0, samples: 1 } });
    expect(again.components.map(({ status }) => status)).toEqual(['kept', 'kept', 'kept']);
    expect(again.checks).toMatchObject([{ outcome: 'pass', samples: 1 }]);
  });

  test('of which only a part was asked for is not decoded, and that is reported', async () => {
    const part = await forgeBundle({ ...request, only: ['joint'], check: { seed: 0, samples: 1 } });
    expect(part.checks).toEqual([]);
    expect(part.not_checked).toEqual([
      'The bundle was not decoded: this run has no encoder and no predictor.',
    ]);
  });
});
